//go:build !linux

package pdftext

import "os/exec"

func attributes(*exec.Cmd) {}

func limitSelf(int64) {}

// resident is not known here; the limits of the engine's own memory still hold.
func resident(int) (int64, bool) { return 0, false }
