// One measurement of one peer: `node peer.mjs PEER URL SCHEMA QUEUES CALLERS MILLISECONDS RUNS IDLE`. Prints one line of JSON:
// how many jobs were put in, one call for each, in how long; how long the workers took for the first RUNS; and how long single jobs waited.
import { boss } from './boss.mjs';
import { graphile } from './graphile.mjs';

const [name, url, schema, ...numbers] = process.argv.slice(2);
const [queues, callers, milliseconds, runs, idle] = numbers.map(Number);
const names = Array.from({ length: queues }, (_, n) => `queue-${n}`);
const peer = await { boss, graphile }[name]({ url, schema, names, callers });
const now = () => performance.now();

/// Every caller puts in one job after the other until `end`.
async function put(end) {
  let count = 0;
  await Promise.all(
    Array.from({ length: callers }, async () => {
      while (now() < end) {
        const n = put.next++;
        await peer.put(names[n % queues], `key-${n}`, { n });
        count += 1;
      }
    }),
  );
  return count;
}
put.next = 0;

const warm = await put(now() + milliseconds / 5);
const begun = now();
const counted = await put(begun + milliseconds);
const seconds = (now() - begun) / 1_000;
const answer = { put: warm + counted, rate: counted / seconds };

if (runs > 0) {
  let done = 0;
  let wake = () => {};
  const watching = { at: Infinity };
  const begin = now();
  await peer.work(() => {
    done += 1;
    if (done >= watching.at) wake();
  });
  const until = (count) => {
    if (done >= count) return Promise.resolve();
    watching.at = count;
    return new Promise((resolve) => (wake = resolve));
  };
  const wanted = Math.min(runs, answer.put);
  await until(wanted);
  answer.work = done / ((now() - begin) / 1_000);
  await until(answer.put);
  const times = [];
  for (let n = 0; n < idle; n++) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    const sent = now();
    const next = done + 1;
    const job = peer.put(names[0], `idle-${n}`, { n });
    await until(next);
    times.push(now() - sent);
    await job;
  }
  answer.idle = times;
  answer.done = done - idle;
}
await peer.stop();
console.log(JSON.stringify(answer));
process.exit(0);
