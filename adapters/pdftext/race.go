//go:build race

package pdftext

// overhead is how many times more memory a program takes under the race detector,
// of which the child is one more.
const overhead = 12
