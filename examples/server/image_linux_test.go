package main

import (
	"bufio"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/postgres/pgtest"
)

// imageUser is the user of the image.
const imageUser = 65532

// The final stage of the Dockerfile, unpacked into a folder, runs as its user with the settings of
// compose.yaml, of kubernetes.yaml and with none, and its health command says that it is ready. The
// user can write to the data and to /tmp alone.
func TestImage_runsAsItsUserWithEachSetting(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can run a program in another file system, as another user")
	}
	file, err := os.ReadFile("deploy/Dockerfile")
	require.NoError(t, err)
	binary := buildFromContext(t, string(file))
	build, final, _ := strings.Cut(string(file), "FROM scratch\n")
	for name, tt := range map[string]struct {
		env     []string
		prepare func(t *testing.T, root string)
		says    string
	}{
		"no settings": {env: []string{"HEALTHLAB_ADDR=127.0.0.1:0"}, says: "data: the folder healthlab-data"},
		"compose":     {env: composeSettings(t), says: "data: the database"},
		"kubernetes": {env: kubernetesSettings(t), says: "data: the database", prepare: func(t *testing.T, root string) {
			require.NoError(t, os.Mkdir(filepath.Join(root, "secret"), 0o755))
			key := filepath.Join(root, "secret/key")
			_, err := newMaster(key)
			require.NoError(t, err)
			require.NoError(t, os.Chmod(key, 0o440))
			require.NoError(t, os.Chown(key, 0, imageUser))
			require.NoError(t, os.Mkdir(filepath.Join(root, "files"), 0o770))
			require.NoError(t, os.Chmod(filepath.Join(root, "files"), 0o770))
			require.NoError(t, os.Chown(filepath.Join(root, "files"), 0, imageUser))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			for dir := root; dir != "/"; dir = filepath.Dir(dir) { // the user has to reach the root
				info, err := os.Stat(dir)
				require.NoError(t, err)
				if info.Mode().Perm()&0o001 == 0 {
					require.NoError(t, os.Chmod(dir, info.Mode().Perm()|0o011))
				}
			}
			work := unpack(t, build, final, binary, root)
			requireOwners(t, root)
			if tt.prepare != nil {
				tt.prepare(t, root)
			}
			inside := func(args ...string) *exec.Cmd {
				cmd := exec.CommandContext(t.Context(), "/server", args...)
				cmd.Dir = work
				cmd.Env = tt.env
				cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: imageUser, Gid: imageUser}}
				return cmd
			}
			cmd := inside()
			cmd.Stderr = os.Stderr
			out, err := cmd.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			lines := bufio.NewScanner(out)
			var first string
			var said []string
			for lines.Scan() {
				said = append(said, lines.Text())
				if url, ok := strings.CutPrefix(lines.Text(), "listening on http://"); ok {
					first = url
				}
				if strings.HasPrefix(lines.Text(), "stop: ") {
					break
				}
			}
			require.Contains(t, said, tt.says)
			var health []string
			if !slices.ContainsFunc(tt.env, func(v string) bool { return strings.HasPrefix(v, "HEALTHLAB_METRICS_ADDR=") }) {
				health = []string{"-addr", first} // port 0 is of the test
			}
			ready, err := inside(append([]string{"health"}, health...)...).CombinedOutput()
			require.NoError(t, err, "%s", ready)
			require.Equal(t, "ready\n", string(ready))
			require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
			_, err = io.Copy(io.Discard, out)
			require.NoError(t, err)
			require.NoError(t, cmd.Wait())
		})
	}
	// docs/operations.md has the size of the image, which is that of the program.
	info, err := os.Stat(binary)
	require.NoError(t, err)
	page, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	size := regexp.MustCompile(`an image without a shell, of (\d+) MB`).FindSubmatch(page)
	require.NotNil(t, size)
	documented, err := strconv.ParseFloat(string(size[1]), 64)
	require.NoError(t, err)
	require.InEpsilon(t, documented, float64(info.Size())/1e6, 0.1, "docs/operations.md has another size")
}

// buildFromContext builds the program as the Dockerfile does, in a copy of the repository without what
// .dockerignore names.
func buildFromContext(t *testing.T, dockerfile string) string {
	t.Helper()
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, ".dockerignore"))
	require.NoError(t, err)
	var ignored []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			ignored = append(ignored, line)
		}
	}
	context := t.TempDir()
	require.NoError(t, filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil || rel == "." {
			return err
		}
		for _, pattern := range ignored {
			anywhere, of := strings.CutPrefix(pattern, "**/")
			if ok, err := path.Match(anywhere, map[bool]string{true: path.Base(rel), false: rel}[of]); err != nil || ok {
				if d.IsDir() {
					return errOr(err, fs.SkipDir)
				}
				return err
			}
		}
		if d.IsDir() {
			return os.MkdirAll(filepath.Join(context, rel), 0o755)
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(context, rel), content, 0o644)
	}))
	require.NoFileExists(t, filepath.Join(context, ".git"))
	command := regexp.MustCompile(`(?m)^RUN (CGO_ENABLED=0 go build .*) -o /server (\./examples/server)$`).FindStringSubmatch(dockerfile)
	require.NotNil(t, command)
	binary := filepath.Join(t.TempDir(), "server")
	cmd := exec.CommandContext(t.Context(), "sh", "-c", command[1]+` -o "$BINARY" `+command[2])
	cmd.Dir = context
	cmd.Env = append(os.Environ(), "BINARY="+binary, "COMMIT=0123abcd", "DATE=2026-03-01T12:00:00Z", "GOWORK=")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	version, err := exec.CommandContext(t.Context(), binary, "version").Output()
	require.NoError(t, err)
	require.Contains(t, string(version), "\ncommit 0123abcd\ndate 2026-03-01T12:00:00Z\n")
	return binary
}

func errOr(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

// unpack makes the file system of the final stage, and returns its working directory.
func unpack(t *testing.T, build, final, binary, root string) (work string) {
	t.Helper()
	made := regexp.MustCompile(`(?m)^RUN mkdir -p (.*)$`).FindStringSubmatch(build)
	require.NotNil(t, made)
	for line := range strings.Lines(final) {
		words := strings.Fields(line)
		switch words[0] {
		case "COPY":
			require.Equal(t, "--from=build", words[1])
			owner := 0
			if words[2] == "--chown=65532:65532" {
				owner = imageUser
				words = slices.Delete(words, 2, 3)
			}
			switch words[2] {
			case "/server":
				content, err := os.ReadFile(binary)
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(filepath.Join(root, words[3]), content, 0o755))
				require.NoError(t, os.Chmod(filepath.Join(root, words[3]), 0o755))
			case "/image":
				for _, dir := range strings.Fields(made[1]) {
					rel, err := filepath.Rel(words[2], dir)
					require.NoError(t, err)
					for at := root; rel != ""; {
						var part string
						part, rel, _ = strings.Cut(rel, "/")
						at = filepath.Join(at, part)
						require.NoError(t, os.MkdirAll(at, 0o755))
						require.NoError(t, os.Chmod(at, 0o755))
						require.NoError(t, os.Chown(at, owner, owner))
					}
				}
			default:
				require.Equal(t, "/etc/ssl/certs/ca-certificates.crt", words[2])
			}
		case "WORKDIR":
			work = words[1]
		case "USER":
			require.Equal(t, "65532:65532", words[1])
		case "ENTRYPOINT":
			require.Equal(t, `["/server"]`, words[1])
		}
	}
	require.DirExists(t, filepath.Join(root, work))
	return work
}

// requireOwners demands that the user of the image owns the data and /tmp, and nothing else.
func requireOwners(t *testing.T, root string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == root {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, name)
		top, _, _ := strings.Cut(rel, "/")
		own := top == "data" || top == "tmp"
		require.Equal(t, own, info.Sys().(*syscall.Stat_t).Uid == imageUser, rel)
		require.Zero(t, info.Mode().Perm()&0o022, rel)
		return nil
	}))
}

// composeSettings are the variables of compose.yaml, on ports of their own and with a database of the
// test.
func composeSettings(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("deploy/compose.yaml")
	require.NoError(t, err)
	var env []string
	for _, m := range regexp.MustCompile(`(?m)^ +(HEALTHLAB_[A-Z_]+): (.*)$`).FindAllStringSubmatch(string(text), -1) {
		env = append(env, setting(t, m[1], m[2]))
	}
	return env
}

// kubernetesSettings are those of kubernetes.yaml.
func kubernetesSettings(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("deploy/kubernetes.yaml")
	require.NoError(t, err)
	var env []string
	for _, m := range regexp.MustCompile(`name: (HEALTHLAB_[A-Z_]+)(?:, value: "?([^"}]*)"?)?`).FindAllStringSubmatch(string(text), -1) {
		env = append(env, setting(t, m[1], m[2]))
	}
	require.Contains(t, env, "HEALTHLAB_ENV=production")
	return env
}

// setting is a variable with the value of a deployment, or that of the test where it is about a
// port, a database or a key.
func setting(t *testing.T, name, value string) string {
	t.Helper()
	switch name {
	case "HEALTHLAB_ADDR":
		value = "127.0.0.1:0"
	case "HEALTHLAB_METRICS_ADDR":
		value = freeAddress(t)
	case "HEALTHLAB_DATABASE_URL":
		value = overTCP(t, pgtest.Empty(t))
	case "HEALTHLAB_API_KEY":
		key := "k_us_" + strings.Repeat("0123456789abcdef", 4)
		if value == "" { // of a Kubernetes secret
			value = "p" + key
		} else {
			value = "s" + key
		}
	case "HEALTHLAB_MANAGEMENT_KEY":
		value = ""
	}
	return name + "=" + value
}

// overTCP returns an address of a database that is reached from another file system: a server of
// tests listens on a socket in a folder.
func overTCP(t *testing.T, address string) string {
	t.Helper()
	c, err := pgconn.ParseConfig(address)
	require.NoError(t, err)
	network, target := pgconn.NetworkAddress(c.Host, c.Port)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial(network, target)
			if err != nil {
				_ = in.Close()
				continue
			}
			go func() { _, _ = io.Copy(out, in); _ = out.Close() }()
			go func() { _, _ = io.Copy(in, out); _ = in.Close() }()
		}
	}()
	u := url.URL{Scheme: "postgres", User: url.UserPassword(c.User, c.Password), Host: listener.Addr().String(), Path: c.Database, RawQuery: "sslmode=disable"}
	return u.String()
}
