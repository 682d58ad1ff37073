// The page: each part starts listening, then the server is asked.

import { startAnnouncing } from "./announce.js";
import { startChart } from "./chart.js";
import { startClassDialog } from "./classdialog.js";
import { startClasses } from "./classes.js";
import { startCounts } from "./counts.js";
import { startDoubts } from "./doubts.js";
import { startFinish } from "./finish.js";
import { startHelp } from "./help.js";
import { on } from "./hub.js";
import { startKeys } from "./keys.js";
import { startMap } from "./map/map.js";
import { startOutbox } from "./outbox.js";
import { startSession } from "./session.js";
import { listen } from "./state.js";
import { startWork } from "./work.js";

for (const start of [startAnnouncing, startWork, startClasses, startSession, startChart, startCounts,
  startDoubts, startMap, startHelp, startClassDialog, startFinish, startKeys]) start();

let begun = false;
on("state", () => {
  if (begun) return;
  begun = true;
  startOutbox();
});
listen();
