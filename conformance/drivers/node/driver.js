'use strict';
// ali-ons behind line-JSON on stdin and stdout; docs/conformance.md has the commands.

console.log = console.info = console.error; // what a library prints must not meet the replies

const readline = require('readline');
const { Unsupported } = require('./messages');
const actions = { ...require('./producers'), ...require('./consumers') };

const FEATURES = [
  'send', 'tags', 'sql', 'broadcast', 'retry', 'delay', 'timer', 'namespace', 'options',
];

function write(reply) {
  process.stdout.write(JSON.stringify(reply) + '\n');
}

function describe(error) {
  const unsupported = error instanceof Unsupported;
  const said = { type: unsupported ? 'Unsupported' : error.name, message: String(error.message) };
  return typeof error.code === 'number' ? { ...said, code: error.code } : said;
}

async function serve(request) {
  try {
    const action = actions[request.do];
    if (!action) throw new Unsupported(request.do);
    const result = await action(request);
    write({ id: request.id, result: result === undefined ? null : result });
  } catch (error) {
    write({ id: request.id, error: describe(error) });
  }
}

// The client keeps a producer of its own that nobody listens to; its errors would end the process.
process.on('uncaughtException', error => console.error('uncaught:', error));
process.on('unhandledRejection', error => console.error('unhandled:', error));
write({ hello: { client: 'ali-ons', features: FEATURES } });
const lines = readline.createInterface({ input: process.stdin });
lines.on('line', line => serve(JSON.parse(line)));
lines.on('close', () => process.exit(0)); // clients leave timers behind
