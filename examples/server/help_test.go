package main

import (
	"bytes"
	"flag"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// output is what the program prints for arguments that end it.
func output(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out, errs bytes.Buffer
	err := run(t.Context(), args, &out, &errs)
	require.Empty(t, errs.String())
	return out.String(), err
}

// The help names every command, every group and every flag, and says a default once.
func TestHelp_namesEveryCommandGroupAndFlag(t *testing.T) {
	t.Parallel()
	short, err := output(t, "help")
	require.NoError(t, err)
	for _, flagOfHelp := range []string{"-h", "-help", "--help"} {
		same, err := output(t, flagOfHelp)
		require.NoError(t, err)
		require.Equal(t, short, same)
	}
	require.Less(t, strings.Count(short, "\n"), 60)
	words := regexp.MustCompile(`"[^"]*"|\S+`)
	for _, c := range commands() {
		require.Contains(t, short, "\n  "+c.name+" ")
		require.Contains(t, short, c.example)
		require.Equal(t, "server "+c.name, strings.Join(strings.Fields(c.example)[:2], " "))
	}
	all, err := output(t, "help", "all")
	require.NoError(t, err)
	_, f, err := settings(nil, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	for _, g := range new(config).flagGroups() {
		require.Contains(t, short, "server "+g.example)
		_, err := checkArguments(words.FindAllString(g.example, -1), f)
		require.NoError(t, err, g.name)
		one, err := output(t, "help", g.name)
		require.NoError(t, err)
		require.Contains(t, all, one)
	}
	f.VisitAll(func(one *flag.Flag) {
		require.Contains(t, all, "\n  -"+one.Name, one.Name)
		var out strings.Builder
		printFlag(&out, one)
		require.LessOrEqual(t, strings.Count(out.String(), "(default"), 1, one.Name)
		require.NotContains(t, out.String(), "(default -1)", one.Name)
	})
	_, err = output(t, "help", "storag")
	require.EqualError(t, err, `"storag" is no group of flags; the nearest one is storage, and server help lists all`)
}

// A wrong command, flag or value is named in one line, with the nearest one or what is expected.
func TestFlags_wrongArgumentIsNamedInOneLine(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "server.conf")
	require.NoError(t, os.WriteFile(file, []byte("lease soon\n"), 0o600))
	other := filepath.Join(t.TempDir(), "server.conf")
	require.NoError(t, os.WriteFile(other, []byte("brnad x\n"), 0o600))
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"imprt", "x.fit"}, `"imprt" is no command; the nearest one is import, and server help lists all`},
		{[]string{"-databse-url", "x"}, "-databse-url is no flag; the nearest one is -database-url, and server help lists all"},
		{[]string{"serve", "--tuor"}, "-tuor is no flag; the nearest one is -tour, and server help lists all"},
		{[]string{"-addr", "-nonsense", "-imports=x"}, "-imports is no flag; the nearest one is -import, and server help lists all"},
		{[]string{"backup", "-too", "x"}, "-too is no flag; the nearest one is -to, and server backup -help lists all"},
		{[]string{"-tour", "extra"}, "arguments other than flags are not expected after the command; each flag begins with -"},
		{[]string{"-addr"}, "-addr needs a value"},
		{[]string{"-lease", "soon"}, "-lease must be a duration such as 90s, 5m or 1h30m"},
		{[]string{"-sandbox-users", "many"}, "-sandbox-users must be a whole number"},
		{[]string{"-team-rate", "fast"}, "-team-rate must be a number such as 0.5"},
		{[]string{"-tour=perhaps"}, "-tour must be true or false"},
		{[]string{"-config", file}, "-config: -lease must be a duration such as 90s, 5m or 1h30m"},
		{[]string{"-config", other}, "-config: brnad is no setting; the nearest one is brand"},
	} {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			t.Parallel()
			out, err := output(t, tt.args...)
			require.EqualError(t, err, tt.want)
			require.Empty(t, out)
		})
	}
}

func TestEnvironment_wrongValueNamesVariableAndExpectation(t *testing.T) {
	t.Setenv("HEALTHLAB_LEASE", "soon")
	_, err := output(t, "-print-config")
	require.EqualError(t, err, "the environment variable HEALTHLAB_LEASE: -lease must be a duration such as 90s, 5m or 1h30m")
}

func TestVersion_printsVersionCommitAndGo(t *testing.T) {
	t.Parallel()
	out, err := output(t, "version")
	require.NoError(t, err)
	require.Regexp(t, `^version \d+\.\d+\.\d+\ncommit \S+\ndate \S+\ngo go\S+ \w+/\w+\n$`, out)
}

// What server import stores is there when the server starts, and -import beside it does the same.
func TestImport_commandAndFlagStoreTheSameData(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := "../../adapters/devices/fileimport/testdata/clarity/Clarity_Export_Exempel_Robin_2026-03-30.csv"
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"import", file, "-data", dir, "-import-user", "wearer", "-import-zone", "Europe/Berlin"}, &out, io.Discard))
	require.Regexp(t, `(?m)^import: user [0-9a-f-]{36} has it$`, out.String())
	p := start(t, "-data", dir)
	var user struct {
		ID string `json:"user_id"`
	}
	p.get("/v2/user/resolve/wearer", &user)
	require.Contains(t, out.String(), user.ID)
	p.quit()
	require.ErrorContains(t, run(t.Context(), []string{"import", "-data", dir}, io.Discard, io.Discard), "server import FILE|FOLDER")
}

// The health command asks the server with the same settings.
func TestHealth_commandSaysWhetherTheServerIsReady(t *testing.T) {
	t.Parallel()
	p := start(t)
	at := strings.TrimPrefix(p.url, "http://")
	out, err := output(t, "health", "-addr", at)
	for tries := 0; err != nil && tries < 1000; tries++ { // its background work begins after it listens
		require.ErrorContains(t, err, "not ready")
		time.Sleep(10 * time.Millisecond)
		out, err = output(t, "health", "-addr", at)
	}
	require.NoError(t, err)
	require.Equal(t, "ready\n", out)
	_, port, _ := strings.Cut(at, ":")
	_, err = output(t, "health", "-addr", "0.0.0.0:"+port)
	require.NoError(t, err)
	p.quit()
	_, err = output(t, "health", "-addr", at)
	require.ErrorContains(t, err, "the server does not answer")
}
