//go:build !unix

package pgtest

import "os/exec"

func handOver(string) error { return nil }

func unprivileged(*exec.Cmd) {}

func apart(*exec.Cmd) {}
