import { expect, test } from "vitest";

import { contentOf } from "./content";

test("tasks stand below their plans, and relations have names", () => {
  const content = contentOf({
    goals: [{ key: "chairs", name: "Everybody sits", description: "Also the band." }],
    plans: [{ key: "spring", name: "Spring" }],
    tasks: [{ key: "sow", title: "Sow", plan_id: "spring" }, { title: "Rest", plan_id: "winter" }, { title: "Call" }],
    relationships: [
      { from: "spring", relation: "supports", to: "chairs" },
      { from: "project", relation: "has", to: "lost" },
    ],
  });
  expect(content.goals).toEqual([{ name: "Everybody sits", about: "Also the band." }]);
  expect(content.plans).toEqual([{ name: "Spring", about: undefined, tasks: [{ name: "Sow", about: undefined }] }]);
  expect(content.tasks.map(({ name }) => name)).toEqual(["Rest", "Call"]);
  expect(content.relations).toEqual([
    { from: "Spring", relation: "supports", to: "Everybody sits" },
    { from: undefined, relation: "has", to: "lost" },
  ]);
  expect(content.counts).toEqual({ goals: 1, plans: 1, tasks: 3, documents: 0, outputs: 0 });
});

test.each([null, "text", [1], { goals: "none", tasks: [null, 3, { title: 5 }] }])("a body of any form is read: %o", (body) => {
  expect(contentOf(body).goals).toEqual([]);
});
