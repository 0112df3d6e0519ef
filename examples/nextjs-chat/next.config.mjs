// A compressed stream would wait for more text.
export default { compress: false };
