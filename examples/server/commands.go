package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/healthlab-dev/healthlab"
)

// command is a command of the program. The first argument names it; without a name, the program serves.
type command struct {
	name, does, example string
	run                 func(ctx context.Context, args []string, stdout, stderr io.Writer) error
}

func commands() []command {
	return []command{
		{"serve", "serve until a signal comes; without a command, too", "server serve -data /var/lib/healthlab", runServe},
		{"import", "store a recording, a phone's export or the export of an account, for one user", "server import export.zip -import-user member-42", runImport},
		{"export", "write the samples of one user and resource, a JSON object a line", "server export -data healthlab-data -team TEAM -user USER -resource heartrate", runExport},
		{"audit", "verify the access log, or print its signed ends", "server audit verify -data healthlab-data", runAudit},
		{"keys", "seal under the current key of the host, or erase users without a key", "server keys rotate -data healthlab-data -sealing-keys FILE", runKeys},
		{"backup", "copy the folder of the data, also while a server uses it", "server backup -data healthlab-data -to data-copy -keys-to keys-copy", runBackup},
		{"mcp", "connect an assistant on standard input and output with a running server", "server mcp -url http://127.0.0.1:8080/mcp -api-key KEY", runAssistant},
		{"health", "ask the server with the same settings whether it is ready: exit status 0 or 1", "server health -addr 127.0.0.1:8080", runHealth},
		{"version", "print version, commit, date and Go", "server version", runVersion},
		{"help", "print this, or the flags of a group", "server help storage", runHelp},
	}
}

// findCommand returns the command that the first argument names, and the arguments after it.
func findCommand(args []string) (command, []string, error) {
	all := commands()
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		return all[0], args, nil
	}
	names := make([]string, len(all))
	for i := range all {
		if names[i] = all[i].name; names[i] == args[0] {
			return all[i], args[1:], nil
		}
	}
	return command{}, nil, fmt.Errorf("%q is no command; the nearest one is %s, and server help lists all", args[0], nearestOf(args[0], names))
}

// commit and commitDate (RFC 3339) are the commit of the build; empty unless the linker sets them (make release).
var commit, commitDate string

// runVersion prints facts about the build, a name and a value on each line.
func runVersion(_ context.Context, args []string, stdout, _ io.Writer) error {
	if len(args) > 0 {
		return fmt.Errorf("version takes no arguments")
	}
	hash, date := commit, commitDate
	if built, ok := debug.ReadBuildInfo(); ok && hash == "" {
		for _, s := range built.Settings {
			switch s.Key {
			case "vcs.revision":
				hash = s.Value
			case "vcs.time":
				date = s.Value
			}
		}
	}
	_, err := fmt.Fprintf(stdout, "version %s\ncommit %s\ndate %s\ngo %s %s/%s\n",
		healthlab.Version, orUnknown(hash), orUnknown(date), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

func orUnknown(text string) string {
	if text == "" {
		return "unknown"
	}
	return text
}
