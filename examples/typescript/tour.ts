// Plays the main job against a sandbox: a user, a week of data, a question, a lab order.
//
//   npm run tour -- http://127.0.0.1:8080 KEY
import { connect, ok } from "./client.js";
import { describe, read } from "./events.js";
import { Webhook } from "standardwebhooks";

const [url, key] = process.argv.slice(2);
if (!url || !key) {
  console.error("usage: npm run tour -- URL KEY");
  process.exit(2);
}
const api = connect(url, key);

const user = await ok(
  api.POST("/v2/user/", { body: { client_user_id: `typescript-${Date.now()}`, fallback_time_zone: "America/New_York" } }),
);
const user_id = user.user_id;
await ok(api.POST("/v2/link/provider/manual/{provider}", { params: { path: { provider: "manual" } }, body: { user_id } }));
console.log(`user ${user_id}, connected to: manual`);

const hour = 3_600_000;
const start = Math.floor(Date.now() / hour) * hour - 7 * 24 * hour;
const data = Array.from({ length: 7 * 24 }, (_, i) => ({
  timestamp: new Date(start + i * hour).toISOString(),
  value: 60 + (i % 24),
  unit: "bpm",
}));
const counts = await ok(
  api.POST("/v2/timeseries/{user_id}/{resource}", {
    params: { path: { user_id, resource: "heartrate" } },
    body: { provider: "manual", data },
  }),
);
console.log(`heart rates: ${counts.new} new`);

const value = { timeseries: "heartrate", field: "value" } as const;
const answer = await ok(
  api.POST("/aggregate/v1/user/{user_id}/query", {
    params: { path: { user_id } },
    body: {
      timeframe: { type: "relative", anchor: new Date().toISOString().slice(0, 10), past: { unit: "day", value: 9 } },
      queries: [
        {
          select: [{ func: "count", arg: value }, { func: "mean", arg: value }],
          group_by: [{ date_trunc: { unit: "day", value: 1 }, arg: { index: "timeseries" } }],
        },
      ],
    },
  }),
);
if (typeof answer === "string") {
  throw new Error("the answer is an archive, not JSON");
}
console.log(`days with heart rates: ${JSON.stringify(answer.results[0]?.table["count"])}`);

const tests = await ok(api.GET("/v3/lab_test"));
const kit = tests.data.find((t) => t.method === "testkit");
if (!kit) {
  throw new Error("the catalogue has no test kit");
}
const { order } = await ok(
  api.POST("/v3/order", {
    body: {
      user_id,
      order_set: { lab_test_ids: [kit.id] },
      patient_details: {
        first_name: "Tour", last_name: "Person", dob: "1984-05-09", gender: "female",
        phone_number: "+12175550100", email: "tour@example.org",
      },
      patient_address: { first_line: "1 Example Street", city: "Springfield", state: "IL", zip: "62701", country: "US" },
    },
  }),
);
const path = { order_id: order.id };
await ok(api.POST("/v3/order/{order_id}/test", { params: { path }, body: {} }));
const done = await ok(api.GET("/v3/order/{order_id}", { params: { path } }));
console.log(`order ${done.last_event.status}`);
const results = await ok(api.GET("/v3/order/{order_id}/result", { params: { path } }));
console.log(`results: ${results.results.length}`);

// A message as the service would send it, signed with an endpoint's secret.
const secret = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const body = JSON.stringify({
  event_type: "labtest.order.updated", data: done, team_id: done.team_id, user_id, client_user_id: null,
});
const at = new Date();
const headers = {
  "webhook-id": "msg_1",
  "webhook-timestamp": String(Math.floor(at.getTime() / 1000)),
  "webhook-signature": new Webhook(secret).sign("msg_1", at, body),
};
console.log(describe(read(secret, body, headers)));
console.log("tour: ok");
