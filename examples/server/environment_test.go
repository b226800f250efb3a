package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/postgres/pgtest"
)

// An environment variable that looks like a setting and is none is refused in each environment,
// with the nearest setting and without its value.
func TestEnvironment_unknownVariableIsRefusedWithTheNearest(t *testing.T) {
	for name, nearest := range map[string]string{
		"HEALTHLAB_DATABSE_URL": "HEALTHLAB_DATABASE_URL", "HEALTHLAB_APIKEY": "HEALTHLAB_API_KEY", "HEALTHLAB_SECRETFILE": "HEALTHLAB_SECRET_FILE",
		"HEALTHLAB_PUBLICURL": "HEALTHLAB_PUBLIC_URL", "HEALTHLAB_": "HEALTHLAB_ENV", "HEALTHLAB_addr": "HEALTHLAB_ADDR",
	} {
		for _, environment := range []string{"sandbox", "production"} {
			t.Run(name+" "+environment, func(t *testing.T) {
				t.Setenv(name, "quillon")
				var out, errs bytes.Buffer
				err := run(t.Context(), []string{"-addr", "127.0.0.1:0", "-env", environment, "-store", "memory"}, &out, &errs)
				require.ErrorContains(t, err, name+" is no setting")
				require.ErrorContains(t, err, "nearest one is HEALTHLAB_")
				if environment == "sandbox" && name != "HEALTHLAB_addr" {
					require.ErrorContains(t, err, nearest)
				}
				require.NotContains(t, err.Error()+out.String()+errs.String(), "quillon")
			})
		}
	}
	t.Setenv("HEALTHLABTEST_PEOPLE", "10")
	t.Setenv("HEALTHLAB_PAPER", "a4")
	require.NoError(t, run(t.Context(), []string{"-version"}, io.Discard, io.Discard))
}

// Production names its store, and has long management keys.
func TestProduction_requiresAStoreAndLongManagementKeys(t *testing.T) {
	t.Parallel()
	short, long := strings.Repeat("k", 31), strings.Repeat("k", 32)
	const team = "=0d4b1f5e-0000-4000-8000-000000000001"
	for _, tt := range []struct {
		args []string
		want string // of the error
	}{
		{[]string{"-env", "production"}, "-env production needs a store: -data, -database-url, or -store memory"},
		{[]string{"-env", "production", "-store", "memory"}, ""},
		{[]string{"-env", "production", "-store", "disk"}, "-store must be memory"},
		{[]string{"-store", "memory", "-database-url", "postgres://db/x"}, "only one of -database-url and -store"},
		{[]string{"-store", "memory", "-data", "x", "-database-url", "postgres://db/x"}, "only one of -data and -database-url and -store"},
		{[]string{"-env", "production", "-store", "memory", "-management-key", short}, "-management-key must have 32 characters or more"},
		{[]string{"-env", "production", "-store", "memory", "-management-key", long}, ""},
		{[]string{"-env", "production", "-store", "memory", "-team-management-key", short + team}, "-team-management-key must have 32 characters or more"},
		{[]string{"-env", "production", "-store", "memory", "-team-management-key", long + team}, ""},
		{[]string{"-management-key", "short"}, ""},
		{nil, ""},
	} {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			t.Parallel()
			err := run(t.Context(), append(tt.args, "-print-config"), io.Discard, io.Discard)
			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tt.want)
			require.NotContains(t, err.Error(), short)
		})
	}
}

// Production does not start with a sealing key that does not open what is stored.
func TestProduction_refusesAWrongSealingKey(t *testing.T) {
	t.Parallel()
	database, secret, files := pgtest.Empty(t), secretFile(t), t.TempDir()
	args := []string{"-addr", "127.0.0.1:0", "-env", "production", "-database-url", database, "-files", files}
	// The secret of an endpoint is sealed.
	start(t, append(args, "-secret-file", secret, "-webhook-url", "https://hooks.example.com")...).quit()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := run(ctx, append(args, "-secret-file", secretFile(t)), io.Discard, io.Discard)
	require.ErrorContains(t, err, "-sealing-keys or -secret-file: must have the keys that the stored data was encrypted with")
	start(t, append(args, "-secret-file", secret)...).quit()
}

// A key that was given is not printed, one that was made is; the first line is where the program
// listens, whatever its public address is.
func TestStart_printsItsAddressAndOnlyACreatedKey(t *testing.T) {
	t.Parallel()
	const given = "sk_us_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	file := filepath.Join(t.TempDir(), "server.conf")
	require.NoError(t, os.WriteFile(file, []byte("api-key "+given+"\n"), 0o600))
	p := start(t, "-public-url", "https://api.example.com")
	require.Regexp(t, `^http://127\.0\.0\.1:[0-9]+$`, p.url)
	require.Regexp(t, `^sk_us_[0-9a-f]{64}$`, p.key)
	p.quit()
	p = launch(t, "-management-key", "manager")
	var said strings.Builder
	for line := range p.lines {
		said.WriteString(line + "\n")
		if strings.HasPrefix(line, "stop: ") {
			break
		}
	}
	require.Regexp(t, `^listening on (http://\S+)
api key: sk_us_[0-9a-f]{64}
data: memory, until the process ends
organisation: [0-9a-f-]{36}
team: [0-9a-f-]{36}
docs: http://\S+/docs/
console: http://\S+/console
stop: Ctrl-C or SIGTERM
$`, said.String())
	p.quit()
	for _, args := range [][]string{{"-api-key", given}, {"-config", file}} {
		p := launch(t, args...)
		require.Regexp(t, `^listening on http://127\.0\.0\.1:[0-9]+$`, <-p.lines)
		for _, line := range p.quit() {
			require.NotContains(t, line, given)
		}
		require.NotContains(t, p.stderr.String(), given)
	}
}

// -print-config prints no secret, in whichever form it was given.
func TestPrintConfig_containsNoSecret(t *testing.T) {
	t.Parallel()
	const marker = "quillonia0quillonia0quillonia0quillonia0"
	secret, files := secretFile(t), t.TempDir()
	for _, args := range [][]string{
		{"-database-url", "postgres://clinic:" + marker + "@db/clinic"}, {"-database-url", "postgres://db/clinic?user=clinic&password=" + marker + "&sslpassword=" + marker},
		{"-database-url", "host=db user=clinic password=" + marker}, {"-database-url", "postgres://db/clinic", "-keys-url", "host=keys password=" + marker},
		{"-management-key", marker}, {"-team-management-key", marker + "=0d4b1f5e-0000-4000-8000-000000000001"},
		{"-api-key", "sk_us_" + strings.Repeat("0123456789abcdef", 4)}, {"-webhook-url", "https://hooks.example.com", "-webhook-secret", marker},
		{"-webhook-proxy", "http://proxy:" + marker + "@proxy.example.com"},
	} {
		var out, errs bytes.Buffer
		require.NoError(t, run(t.Context(), append(args, "-secret-file", secret, "-files", files, "-print-config"), &out, &errs), args[0])
		require.NotContains(t, out.String()+errs.String(), marker, args[0])
		require.NotContains(t, out.String()+errs.String(), "0123456789abcdef", args[0])
	}
}
