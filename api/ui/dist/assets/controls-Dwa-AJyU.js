function e({metadata:e}){let t=e?.finish_reason;return t===`length`||t===`content_filter`?t:void 0}function t({parts:e}){return e.findLast(e=>e.type===`data-questions`)?.data.questions??[]}function n(e){return e.parts.filter(e=>e.type===`text`).map(e=>e.text.trim()).filter(e=>e!==``).join(`

`)}export{t as n,n as r,e as t};