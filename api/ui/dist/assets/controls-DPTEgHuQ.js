function e({metadata:e}){let t=e?.finish_reason;return t===`length`||t===`content_filter`?t:void 0}function t(e){return e.parts.filter(e=>e.type===`text`).map(e=>e.text.trim()).filter(e=>e!==``).join(`

`)}export{t as n,e as t};