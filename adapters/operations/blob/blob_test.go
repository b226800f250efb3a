package blob_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/operations/blob"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/labreport"
	"github.com/healthlab-dev/healthlab/labreport/labreporttest"
)

// team and user are whom files are about.
var (
	team = healthlab.TeamID{UUID: uuid.MustParse("5f4e0a3c-0000-4000-8000-000000000001")}
	user = healthlab.UserID{UUID: uuid.MustParse("5f4e0a3c-0000-4000-8000-000000000002")}
)

// sealer returns one whose current key is the first of names.
func sealer(t testing.TB, names ...string) healthlab.Sealer {
	t.Helper()
	keys := map[string][]byte{}
	for _, n := range names {
		keys[n] = bytes.Repeat([]byte(n[:1]), 32)
	}
	s, err := healthlab.NewAESSealer(names[0], keys)
	require.NoError(t, err)
	return s
}

func store(t testing.TB, place blob.Place, seal healthlab.Sealer) *blob.Store {
	t.Helper()
	s, err := blob.New(place, seal, nil)
	require.NoError(t, err)
	return s
}

func directory(t testing.TB, dir string) *blob.Directory {
	t.Helper()
	d, err := blob.OpenDirectory(dir, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

// client speaks to a service at an address.
func client(t testing.TB, address *url.URL, transport http.RoundTripper) *minio.Client {
	t.Helper()
	secret, _ := address.User.Password()
	c, err := minio.New(address.Host, &minio.Options{
		Creds: credentials.NewStaticV4(address.User.Username(), secret, ""), Secure: address.Scheme == "https",
		Region: "us-east-1", MaxRetries: 1, Transport: transport,
	})
	require.NoError(t, err)
	return c
}

// bucket is a bucket of a service on this machine, in this process.
func bucket(t testing.TB) *blob.Bucket {
	t.Helper()
	back := s3mem.New()
	require.NoError(t, back.CreateBucket("files"))
	server := httptest.NewTLSServer(gofakes3.New(back, gofakes3.WithLogger(gofakes3.DiscardLog())).Server())
	t.Cleanup(server.Close)
	address, err := url.Parse(server.URL)
	require.NoError(t, err)
	address.User = url.UserPassword("key", "secret")
	b, err := blob.NewBucket(client(t, address, server.Client().Transport), "files", "healthlab/")
	require.NoError(t, err)
	return b
}

// places are all that can keep files here. One more service may be named in the
// environment: http://KEY:SECRET@HOST/BUCKET, with a bucket that is empty.
func places(t *testing.T) map[string]func(t testing.TB) blob.Place {
	all := map[string]func(testing.TB) blob.Place{
		"directory": func(t testing.TB) blob.Place { return directory(t, t.TempDir()) },
		"bucket":    func(t testing.TB) blob.Place { return bucket(t) },
	}
	if text := os.Getenv("HEALTHLABTEST_S3"); text != "" {
		address, err := url.Parse(text)
		require.NoError(t, err)
		n := 0
		all["service"] = func(t testing.TB) blob.Place {
			n++
			b, err := blob.NewBucket(client(t, address, nil), strings.Trim(address.Path, "/"), fmt.Sprintf("test-%d-%d/", time.Now().UnixNano(), n))
			require.NoError(t, err)
			return b
		}
	}
	return all
}

func TestStore_passesTheBlobStoreSuite(t *testing.T) {
	for name, place := range places(t) {
		t.Run(name, func(t *testing.T) {
			labreporttest.RunBlobStore(t, func(t *testing.T) labreport.BlobStore { return store(t, place(t), sealer(t, "a")) })
		})
	}
}

// onDisk returns what lies in a folder, by name.
func onDisk(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		out[filepath.ToSlash(name)] = b
		return err
	}))
	return out
}

func TestPut_storesOnlyEncryptedFiles(t *testing.T) {
	dir := t.TempDir()
	s := store(t, directory(t, dir), sealer(t, "march"))
	const marker = "Ferritin 18 ng/mL"
	require.NoError(t, s.Put(t.Context(), team, user, "reports/1", strings.NewReader(strings.Repeat(marker, 5000))))
	files := onDisk(t, dir)
	require.Len(t, files, 1)
	sealed := files["reports/1.age"]
	require.True(t, bytes.HasPrefix(sealed, []byte("age-encryption.org/v1\n")))
	require.NotContains(t, string(sealed), marker[:8])
	info, err := os.Stat(filepath.Join(dir, "reports", "1.age"))
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())

	// The same content twice is not the same file.
	require.NoError(t, s.Put(t.Context(), team, user, "reports/2", strings.NewReader(strings.Repeat(marker, 5000))))
	require.NotEqual(t, sealed, onDisk(t, dir)["reports/2.age"])

	// An empty folder does not tell of what was in it.
	for _, key := range []string{"reports/1", "reports/2"} {
		require.NoError(t, s.Delete(t.Context(), key))
	}
	_, err = os.Stat(filepath.Join(dir, "reports"))
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// A file opens under its own name alone.
func TestGet_fileMovedToAnotherKeyIsInvalid(t *testing.T) {
	dir := t.TempDir()
	s := store(t, directory(t, dir), sealer(t, "a"))
	require.NoError(t, s.Put(t.Context(), team, user, "team-1", strings.NewReader("x")))
	require.NoError(t, os.Rename(filepath.Join(dir, "team-1.age"), filepath.Join(dir, "team-2.age")))
	_, err := s.Get(t.Context(), team, user, "team-2")
	require.ErrorIs(t, err, healthlab.Invalid)
}

// A damaged file never returns wrong content: a read returns a prefix of what was written,
// and only a complete read ends without an error.
func TestGet_damagedFileNeverReturnsWrongContent(t *testing.T) {
	dir := t.TempDir()
	s := store(t, directory(t, dir), sealer(t, "a"))
	content := bytes.Repeat([]byte("0123456789abcdef"), 9000) // three pieces
	require.NoError(t, s.Put(t.Context(), team, user, "k", bytes.NewReader(content)))
	file := filepath.Join(dir, "k.age")
	good, err := os.ReadFile(file)
	require.NoError(t, err)
	rapid.Check(t, func(t *rapid.T) {
		bad := bytes.Clone(good)
		at := rapid.OneOf(rapid.IntRange(0, 400), rapid.IntRange(0, len(good)-1)).Draw(t, "at")
		switch rapid.SampledFrom([]string{"flip", "cut", "twice", "drop", "add"}).Draw(t, "how") {
		case "flip":
			bad[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		case "cut":
			bad = bad[:at]
		case "twice":
			bad = append(bytes.Clone(bad[:at]), bad[max(0, at-70_000):]...)
		case "drop":
			bad = append(bad[:at], bad[min(len(bad), at+rapid.IntRange(1, 70_000).Draw(t, "n")):]...)
		case "add":
			bad = append(bad, 0)
		}
		if bytes.Equal(bad, good) {
			return
		}
		require.NoError(t, os.WriteFile(file, bad, 0o600))
		r, err := s.Get(context.Background(), team, user, "k")
		if errors.Is(err, healthlab.Unavailable) { // the header names another key; the caller may still have it
			name := bytes.SplitN(good, []byte("\n"), 3)[1]
			require.NotContains(t, string(bad), string(name))
			return
		}
		if err != nil {
			require.ErrorIs(t, err, healthlab.Invalid)
			return
		}
		defer r.Close()
		got, err := io.ReadAll(r)
		require.ErrorIs(t, err, healthlab.Invalid)
		require.True(t, bytes.HasPrefix(content, got))
	})
}

func TestRotate_reencryptsFilesWithTheNewKey(t *testing.T) {
	for name, place := range places(t) {
		t.Run(name, func(t *testing.T) {
			p := place(t)
			old, both, without := store(t, p, sealer(t, "old")), store(t, p, sealer(t, "new", "old")), store(t, p, sealer(t, "new"))
			require.NoError(t, old.Put(t.Context(), team, user, "k/1", strings.NewReader("one")))
			require.NoError(t, old.Put(t.Context(), team, user, "k/2", strings.NewReader("two")))
			require.NoError(t, both.Put(t.Context(), team, user, "k/2", strings.NewReader("two")))
			for key, want := range map[string]string{"k/1": "one", "k/2": "two"} {
				r, err := both.Get(t.Context(), team, user, key)
				require.NoError(t, err)
				got, err := io.ReadAll(r)
				require.NoError(t, errors.Join(err, r.Close()))
				require.Equal(t, want, string(got))
			}
			_, err := without.Get(t.Context(), team, user, "k/1")
			require.ErrorIs(t, err, healthlab.Unavailable)
			require.NoError(t, without.Delete(t.Context(), "k/1"))
			r, err := without.Get(t.Context(), team, user, "k/2")
			require.NoError(t, err)
			require.NoError(t, r.Close())
		})
	}
}

// mute is a sealer whose vault does not answer.
type mute struct{ healthlab.Sealer }

func (mute) Seal(context.Context, []byte, []byte) (healthlab.Sealed, error) {
	return healthlab.Sealed{}, healthlab.Unavailable
}

func TestPut_failingSealerStoresNothing(t *testing.T) {
	dir := t.TempDir()
	s := store(t, directory(t, dir), mute{sealer(t, "a")})
	require.ErrorIs(t, s.Put(t.Context(), team, user, "k", strings.NewReader("x")), healthlab.Unavailable)
	require.Empty(t, onDisk(t, dir))
}

// dying is the argument that makes a process of this test write and never finish.
const dying = "BLOB_TEST_DIRECTORY"

func TestMain(m *testing.M) {
	if dir := os.Getenv(dying); dir != "" {
		writeForEver(dir)
	}
	os.Exit(m.Run())
}

func version(n int) []byte {
	return bytes.Repeat([]byte{byte('a' + n%26)}, 1+n%26*40_000)
}

// writeForEver writes version after version, and says a line for each that it has begun.
func writeForEver(dir string) {
	keys, _ := healthlab.NewAESSealer("a", map[string][]byte{"a": bytes.Repeat([]byte("a"), 32)})
	d, err := blob.OpenDirectory(dir, nil)
	if err != nil {
		os.Exit(1)
	}
	s, _ := blob.New(d, keys, nil)
	for n := 0; ; n++ {
		content := io.MultiReader(bytes.NewReader(version(n)), tell(func() { fmt.Println(n) }))
		if s.Put(context.Background(), team, user, "k/0", content) != nil {
			os.Exit(1)
		}
	}
}

type tell func()

func (f tell) Read([]byte) (int, error) { f(); return 0, io.EOF }

// A process that is killed while it writes leaves the old content or the new.
func TestPut_crashLeavesTheOldOrTheNewContent(t *testing.T) {
	dir := t.TempDir()
	r := rand.New(rand.NewPCG(7, 7))
	self, err := os.Executable()
	require.NoError(t, err)
	for range prove.Count(10, 200) {
		child := exec.CommandContext(t.Context(), self)
		child.Env = append(os.Environ(), dying+"="+dir)
		out, err := child.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, child.Start())
		lines := bufio.NewScanner(out)
		for range 1 + r.IntN(60) {
			require.True(t, lines.Scan())
		}
		require.NoError(t, child.Process.Kill())
		_ = child.Wait()
		s := store(t, directory(t, dir), sealer(t, "a"))
		f, err := s.Get(t.Context(), team, user, "k/0")
		if errors.Is(err, healthlab.NotFound) {
			continue // killed in its first write
		}
		require.NoError(t, err)
		got, err := io.ReadAll(f)
		require.NoError(t, errors.Join(err, f.Close()))
		require.NotEmpty(t, got)
		require.True(t, bytes.Equal(version(int(got[0]-'a')), got), "a part of a file")
	}
	// What they left is gone a day later.
	later, err := blob.OpenDirectory(dir, &blob.DirectoryOptions{Now: func() time.Time { return time.Now().Add(25 * time.Hour) }})
	require.NoError(t, err)
	require.NoError(t, later.Close())
	for name := range onDisk(t, dir) {
		require.Equal(t, "k/0.age", name)
	}
}

func TestOpen_errorOfAnUnusableFolderDoesNotContainItsPath(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := blob.OpenDirectory(file, nil)
	require.ErrorIs(t, err, healthlab.Unavailable)
	require.NotContains(t, err.Error(), file)

	d, err := blob.OpenDirectory(filepath.Join(t.TempDir(), "made"), nil)
	require.NoError(t, err)
	require.NoError(t, d.Close())
	closed := store(t, d, sealer(t, "a"))
	require.ErrorIs(t, closed.Put(t.Context(), team, user, "k", strings.NewReader("x")), healthlab.Unavailable)
	_, err = closed.Get(t.Context(), team, user, "k")
	require.ErrorIs(t, err, healthlab.Unavailable)

	for name, answer := range map[string]http.HandlerFunc{
		"broken": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"hangs up": func(w http.ResponseWriter, _ *http.Request) {
			c, _, _ := http.NewResponseController(w).Hijack()
			_ = c.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(answer)
			defer server.Close()
			address, err := url.Parse(server.URL)
			require.NoError(t, err)
			address.User = url.UserPassword("key", "secret")
			b, err := blob.NewBucket(client(t, address, nil), "files", "")
			require.NoError(t, err)
			s := store(t, b, sealer(t, "a"))
			require.ErrorIs(t, s.Put(t.Context(), team, user, "k", strings.NewReader("x")), healthlab.Unavailable)
			_, err = s.Get(t.Context(), team, user, "k")
			require.ErrorIs(t, err, healthlab.Unavailable)
			require.ErrorIs(t, s.Delete(t.Context(), "k"), healthlab.Unavailable)
			require.ErrorIs(t, b.List(t.Context(), func(string) error { return nil }), healthlab.Unavailable)
		})
	}
	_, err = blob.New(nil, sealer(t, "a"), nil)
	require.ErrorIs(t, err, healthlab.Invalid)
	_, err = blob.NewBucket(nil, "files", "")
	require.ErrorIs(t, err, healthlab.Invalid)
}

// BenchmarkPutGet stores and reads a report of ten pages.
func BenchmarkPutGet(b *testing.B) {
	s := store(b, directory(b, b.TempDir()), sealer(b, "a"))
	content := bytes.Repeat([]byte("x"), 2<<20)
	b.SetBytes(int64(len(content)))
	b.ReportAllocs()
	for b.Loop() {
		require.NoError(b, s.Put(b.Context(), team, user, "k", bytes.NewReader(content)))
		r, err := s.Get(b.Context(), team, user, "k")
		require.NoError(b, err)
		_, err = io.Copy(io.Discard, r)
		require.NoError(b, errors.Join(err, r.Close()))
	}
}
