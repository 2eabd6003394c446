'use strict';
// Messages, options and inboxes, to and from JSON.

const zlib = require('zlib');
const { Message } = require('ali-ons');

const BODY_SHOWN_MAX = 4096;

/** What the client cannot do at all: the case is shown as not applicable. */
class Unsupported extends Error {}

function read(wanted) {
  const body = wanted.bodySize === undefined
    ? Buffer.from(wanted.body) : Buffer.alloc(wanted.bodySize, 'x');
  const message = new Message(wanted.topic, body);
  delete message.properties.TAGS;
  if (wanted.tags !== undefined) message.tags = wanted.tags;
  if (wanted.keys !== undefined) message.keys = [wanted.keys];
  if (wanted.flag !== undefined) message.flag = wanted.flag;
  if (wanted.delayLevel !== undefined) message.delayTimeLevel = wanted.delayLevel;
  if (wanted.waitStoreMsgOK !== undefined) message.waitStoreMsgOK = wanted.waitStoreMsgOK;
  for (const [name, value] of Object.entries(wanted.properties || {})) {
    message.properties[name] = String(value);
  }
  return message;
}

function show(message) {
  const body = message.body || Buffer.alloc(0);
  const shown = {
    topic: message.topic,
    tags: message.tags || null,
    keys: message.keys || null,
    flag: message.flag,
    properties: message.properties,
    queueId: message.queueId,
    queueOffset: message.queueOffset,
    msgId: message.msgId,
    offsetMsgId: message.msgId,
    reconsumeTimes: message.reconsumeTimes,
    bornTimestamp: message.bornTimestamp,
    storeTimestamp: message.storeTimestamp,
    sysFlag: message.sysFlag,
    bodySize: body.length,
  };
  if (body.length <= BODY_SHOWN_MAX) shown.body = body.toString();
  else shown.bodyCrc = crc32(body);
  return shown;
}

/** Node 20 has none of its own; a gzip's trailer has it. */
function crc32(body) {
  return zlib.gzipSync(body).readUInt32LE(zlib.gzipSync(body).length - 8);
}

/** Options by Java's names: `known` says what the client calls each, or makes several of it. */
function options(wanted, known) {
  const made = {};
  for (const [name, value] of Object.entries(wanted || {})) {
    if (!(name in known)) throw new Unsupported(`option ${name}`);
    const as = known[name];
    Object.assign(made, typeof as === 'function' ? as(value) : { [name]: value });
  }
  return made;
}

/** What came to a client, in its order; a reader waits until there is enough of it. */
class Inbox {
  constructor() {
    this.items = [];
    this.readers = new Set();
  }

  add(item) {
    this.items.push(item);
    for (const look of this.readers) look();
  }

  wait({ from = 0, atLeast, withinMs }) {
    return new Promise(resolve => {
      const done = () => {
        clearTimeout(timer);
        this.readers.delete(look);
        resolve(this.items.slice(from));
      };
      const look = () => this.items.length >= from + atLeast && done();
      const timer = setTimeout(done, withinMs);
      this.readers.add(look);
      look();
    });
  }
}

module.exports = { Unsupported, Inbox, read, show, options };
