//go:build !race

package pdftext

// overhead is how many times more memory and time a program takes under the race detector;
// this one is built without.
const overhead = 1
