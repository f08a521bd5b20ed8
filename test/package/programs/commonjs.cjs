// A user's CommonJS program.
const torch = require("cresset");

void import("./train.mjs").then(({ train }) => console.log(JSON.stringify(train(torch))));
