package lake

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/tables"
)

// export is one export of one team in progress.
type export struct {
	*Exporter
	team     healthlab.TeamID
	manifest Manifest
	files    map[partition]File // files in the manifest
	present  []string           // paths that exist below the team's folder at the beginning
	verify   bool               // also compare the stored samples, not only the headers of their chunks

	mu       sync.Mutex
	found    map[partition]*data
	accessed map[healthlab.UserID]bool // users whose access was recorded
	shown    time.Time                 // when the progress was last logged
}

// data is what a scan found in a partition: the fingerprint, and the users with rows.
type data struct {
	print Fingerprint
	users []healthlab.UserID // in the order of creation; nil for orders
}

func (e *Exporter) begin(ctx context.Context, team healthlab.TeamID) (*export, error) {
	m, err := e.readManifest(ctx, team)
	if err != nil {
		return nil, err
	}
	x := &export{Exporter: e, team: team, manifest: m, files: map[partition]File{}, found: map[partition]*data{}, accessed: map[healthlab.UserID]bool{}}
	x.verify = e.opts.Now().Sub(m.VerifiedAt) >= e.opts.Verify
	if err := e.place.List(ctx, func(name string) error {
		if strings.HasPrefix(name, folder(team)) {
			x.present = append(x.present, name)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	slices.Sort(x.present)
	for _, f := range m.Files {
		p := partition{f.Resource, f.Month}
		if _, ok := slices.BinarySearch(x.present, f.Path); !ok {
			delete(x.manifest.Fingerprints, p.String()) // the file is missing, so write the month again
			continue
		}
		x.files[p] = f
	}
	return x, nil
}

func (x *export) export(ctx context.Context) error {
	began := x.opts.Now().UTC()
	x.shown = began
	if err := x.scan(ctx); err != nil {
		return err
	}
	changed := x.changed()
	if err := x.write(ctx, changed); err != nil {
		return err
	}
	if x.verify {
		x.manifest.VerifiedAt = began
	}
	if err := x.writeManifest(ctx); err != nil {
		return err
	}
	if err := x.removeRetired(ctx); err != nil {
		return err
	}
	x.opts.Log.InfoContext(ctx, "exported to the lake", "team", x.team, "changed", len(changed), "files", len(x.files), "verified", x.verify)
	return nil
}

// changed returns the partitions that must be written again, because their data differs from that in the manifest or no
// longer exists.
func (x *export) changed() []partition {
	var out []partition
	for p, d := range x.found {
		known := x.manifest.Fingerprints[p.String()]
		if d.print.Headers != known.Headers || x.verify && d.print.Content != known.Content {
			out = append(out, p)
		}
	}
	for p := range x.files {
		if x.found[p] == nil {
			out = append(out, p)
		}
	}
	for text := range x.manifest.Fingerprints {
		resource, month, _ := strings.Cut(text, "/")
		if x.found[partition{resource, month}] == nil {
			delete(x.manifest.Fingerprints, text)
		}
	}
	slices.SortFunc(out, compare)
	return out
}

// manifestEvery is the interval at which a running export writes the manifest.
const manifestEvery = time.Minute

// write writes the changed partitions concurrently. It writes the manifest every minute, so that after a crash only the
// last minute of work is repeated.
func (x *export) write(ctx context.Context, changed []partition) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(x.opts.Workers)
	saved := x.opts.Now()
	written := 0
	for _, p := range changed {
		group.Go(func() error {
			f, print, err := x.writePart(ctx, p)
			if err != nil {
				return fmt.Errorf("write %s: %w", p, err)
			}
			x.mu.Lock()
			defer x.mu.Unlock()
			x.replace(p, f, print)
			written++
			x.progress(ctx, "months written", written, len(changed))
			if x.opts.Now().Sub(saved) < manifestEvery {
				return nil
			}
			saved = x.opts.Now()
			return x.writeManifest(ctx)
		})
	}
	return group.Wait()
}

// progressEvery is the interval of progress log lines.
const progressEvery = time.Minute

func (x *export) progress(ctx context.Context, step string, done, of int) {
	// The caller holds mu.
	if now := x.opts.Now(); done < of && now.Sub(x.shown) >= progressEvery {
		x.shown = now
		x.opts.Log.InfoContext(ctx, "exporting to the lake", "team", x.team, "step", step, "done", done, "of", of)
	}
}

// errNoRows means that a file would have no rows.
var errNoRows = errors.New("no rows")

// writePart writes a partition as a new file. The file is nil if the partition has no rows. The fingerprint is that of
// the written rows, which may be newer than those that scan found.
func (x *export) writePart(ctx context.Context, p partition) (*File, Fingerprint, error) {
	found := x.found[p]
	if found == nil {
		return nil, Fingerprint{}, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f := &File{Resource: p.resource, Month: p.month, Path: partPath(x.team, p, x.opts.Now(), strings.ToLower(rand.Text()[:8]))}
	var print Fingerprint
	r, w := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		counted := &counter{w: w}
		t := newTable(counted, p.resource, x.manifest.Schemas[p.resource])
		err := x.fillTable(ctx, t, p, found, &print)
		if err == nil && t.rows == 0 {
			err = errNoRows
		}
		if err == nil {
			err = t.close()
		}
		f.Rows, f.Bytes = t.rows, counted.n
		w.CloseWithError(err)
	}()
	err := x.place.Write(ctx, f.Path, r)
	cancel()
	r.CloseWithError(context.Canceled)
	<-done
	if errors.Is(err, errNoRows) {
		return nil, print, nil
	}
	return f, print, err
}

func (x *export) fillTable(ctx context.Context, t *table, p partition, found *data, print *Fingerprint) error {
	from, to, err := monthRange(p.month)
	if err != nil {
		return err
	}
	if p.resource == orderResource || p.resource == resultResource {
		return x.fillOrders(ctx, t, p, from, to, print)
	}
	for _, user := range found.users {
		if err := x.recordAccess(ctx, user); err != nil {
			return err
		}
		before := *print
		err := x.health.View(ctx, x.team, user, func(v healthdata.View) error {
			*print = before
			if s := summaryTable(p.resource); s != nil {
				return x.fillSummaries(ctx, t, v, s, user, from, to, print)
			}
			return x.fillSamples(ctx, t, v, user, p, from.UnixMicro(), to.UnixMicro(), print)
		})
		if err != nil && !errors.Is(err, healthlab.NotFound) { // NotFound: deleted since the scan
			return err
		}
	}
	return nil
}

// recordAccess calls Options.Accessed before the first data of a user is written. It calls it once per export for each
// user, or more often if partitions of the user are written concurrently.
func (x *export) recordAccess(ctx context.Context, user healthlab.UserID) error {
	x.mu.Lock()
	known := x.accessed[user]
	x.mu.Unlock()
	if known {
		return nil
	}
	if err := x.opts.Accessed(ctx, x.team, user); err != nil {
		return fmt.Errorf("record access: %w", err)
	}
	x.mu.Lock()
	x.accessed[user] = true
	x.mu.Unlock()
	return nil
}

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

// scan sets x.found: the partitions with data, and their fingerprints.
func (x *export) scan(ctx context.Context) error {
	users, err := x.users(ctx)
	if err != nil {
		return err
	}
	found := make([]map[partition]Fingerprint, len(users))
	read := 0
	group, scanning := errgroup.WithContext(ctx)
	group.SetLimit(x.opts.Workers)
	for i, user := range users {
		group.Go(func() error {
			var prints map[partition]Fingerprint
			err := x.health.View(scanning, x.team, user, func(v healthdata.View) error {
				prints = map[partition]Fingerprint{}
				if err := x.scanSamples(scanning, v, user, prints); err != nil {
					return err
				}
				return x.scanSummaries(scanning, v, user, prints)
			})
			if err != nil && !errors.Is(err, healthlab.NotFound) { // NotFound: deleted in the meantime
				return err
			}
			x.mu.Lock()
			defer x.mu.Unlock()
			if err == nil {
				found[i] = prints
			}
			read++
			x.progress(ctx, "users read", read, len(users))
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for i, prints := range found {
		for p, f := range prints {
			d := x.found[p]
			if d == nil {
				d = &data{}
				x.found[p] = d
			}
			d.print.add(f)
			d.users = append(d.users, users[i])
		}
	}
	return x.scanOrders(ctx)
}

// userPage is the number of users that are read at a time.
const userPage = 500

// users lists the existing users. Consecutive pages overlap by one user; if that user is missing, a user was deleted
// between the requests, and the list starts again.
func (x *export) users(ctx context.Context) ([]healthlab.UserID, error) {
	for {
		var out []healthlab.UserID
		for {
			offset := max(0, len(out)-1)
			page, err := x.health.Users(ctx, x.team, offset, userPage)
			if err != nil {
				return nil, err
			}
			list := page.Users
			if len(out) > 0 {
				if len(list) == 0 || list[0].ID != out[len(out)-1] {
					break
				}
				list = list[1:]
			}
			for i := range list {
				out = append(out, list[i].ID)
			}
			if len(page.Users) < userPage {
				return out, nil
			}
		}
	}
}

// pseudonym returns the pseudonym of an id, such as that of a user. kind keeps equal ids of different kinds apart. It
// is a keyed hash that differs between teams. With [Options.Identified] it is the id itself.
func (x *export) pseudonym(kind, id string) string {
	if x.opts.Identified || id == "" {
		return id
	}
	h := hmac.New(sha256.New, x.key)
	h.Write([]byte(x.team.String() + "\x00" + kind + "\x00" + id))
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// schemas returns the columns of all resources.
func (e *Exporter) schemas() map[string][]Column {
	out := map[string][]Column{}
	for _, r := range tables.SampleTimeseries() {
		if columns := e.sampleColumns(r); columns != nil {
			out[r.Slug] = columns
		}
	}
	for _, t := range tables.All() {
		out[t.Resource] = e.summaryColumns(t)
	}
	if e.opts.Orders != nil {
		out[orderResource], out[resultResource] = orderColumns, resultColumns
	}
	return out
}
