//go:build race

package pdftext

// overhead is the factor by which the race detector increases memory, and the time to compile the engine. The child
// process runs under it too.
const overhead = 12
