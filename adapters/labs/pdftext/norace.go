//go:build !race

package pdftext

// overhead is the factor of memory and time under the race detector. This program is built without it.
const overhead = 1
