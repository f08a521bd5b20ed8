// Reading values of a device while the event loop runs on.
import { gatherData, type TypedArray } from "../convert.js";
import type { Tensor } from "../tensor.js";
import { Event } from "./streams.js";
import { withDevice } from "./device.js";

/** The tensor on the CPU, once the copy is done; itself where it is there already. */
async function fetched(x: Tensor): Promise<Tensor> {
  if (!x.isCuda) return x;
  const event = new Event();
  const here = withDevice(x.device, () => {
    const copy = x.detach().to("cpu", { nonBlocking: true });
    event.record();
    return copy;
  });
  try {
    await event.synchronizeAsync();
  } finally {
    event.dispose();
  }
  return here;
}

/** As gatherData(), while the event loop runs on. */
export async function fetchData(x: Tensor): Promise<TypedArray> {
  return gatherData(await fetched(x));
}

/** As item(), while the event loop runs on. */
export async function fetchItem(x: Tensor): Promise<ReturnType<Tensor["item"]>> {
  return (await fetched(x)).item();
}
