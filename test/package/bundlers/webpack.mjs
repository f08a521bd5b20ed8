// Builds the user's page with webpack: node webpack.mjs OUT.
import webpack from "webpack";

const config = {
  mode: "production",
  context: process.cwd(),
  entry: "./pages/page.mjs",
  output: { path: process.argv[2], filename: "page.mjs" },
  performance: { hints: false },
  optimization: { minimize: false }, // it takes most of the time; the others' pages are minified
};

webpack(config, (error, stats) => {
  if (!error && !stats.hasErrors() && !stats.hasWarnings()) return;
  console.error(error ?? stats.toString("errors-warnings"));
  process.exitCode = 1;
});
