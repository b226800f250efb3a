//go:build race

package pdftext

// overhead is how many times more memory, and time to compile the engine, a program takes
// under the race detector. The child is such a program.
const overhead = 12
