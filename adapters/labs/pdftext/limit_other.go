//go:build !linux

package pdftext

import "os/exec"

func attributes(*exec.Cmd) {}

func limitSelf(int64) {}

func resident(int) (int64, bool) { return 0, false }
