package lake

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata/tables"
)

// Manifest lists the files of a team. It is stored as manifest.json in the team's folder of the lake.
type Manifest struct {
	Version int              `json:"version"`
	Team    healthlab.TeamID `json:"team"`
	// WrittenAt is when the manifest was written, and VerifiedAt when an export last read all stored samples: see
	// [Options.Verify].
	WrittenAt  time.Time `json:"written_at"`
	VerifiedAt time.Time `json:"verified_at"`
	// Files lists one file for each month of a resource with rows, by resource and month.
	Files []File `json:"files"`
	// Schemas maps each resource to the columns of its files.
	Schemas map[string][]Column `json:"schemas"`
	// Retired lists files of earlier manifests with the time of their replacement. They must not be read.
	Retired []RetiredFile `json:"retired"`
	// Settings is a fingerprint of Options.Identified and the key of pseudonyms. If it changes, everything is exported
	// again.
	Settings print `json:"settings"`
	// Fingerprints maps each month of a resource to the fingerprint of its data.
	Fingerprints map[string]Fingerprint `json:"fingerprints"`
}

// manifestVersion is the version of the manifest's format and of the columns. If it increases, everything is exported
// again.
const manifestVersion = 1

// File is one Parquet file.
type File struct {
	Resource string `json:"resource"`
	// Month is YYYY-MM, in UTC: of the time of samples and summaries, and of the creation of
	// orders.
	Month string `json:"month"`
	// Path is relative to the root of the lake.
	Path  string `json:"path"`
	Rows  int64  `json:"rows"`
	Bytes int64  `json:"bytes"`
}

// RetiredFile is a replaced file that is removed after [Options.Grace].
type RetiredFile struct {
	Path string    `json:"path"`
	At   time.Time `json:"at"`
}

// Column is a column of the files of a resource.
type Column struct {
	Name string `json:"name"`
	// Type is int64, float64, bool, string, date, timestamp (what the person's clock showed)
	// or instant (UTC). Lists are strings with JSON.
	Type tables.ColumnType `json:"type"`
	Unit string            `json:"unit,omitempty"`
	Doc  string            `json:"doc,omitempty"`
}

// partition is the data of one month (YYYY-MM, UTC) of a resource. It becomes one file.
type partition struct{ resource, month string }

func (p partition) String() string { return p.resource + "/" + p.month }

func compare(a, b partition) int {
	return cmp.Or(cmp.Compare(a.resource, b.resource), cmp.Compare(a.month, b.month))
}

func folder(team healthlab.TeamID) string { return "team=" + team.String() + "/" }

func manifestName(team healthlab.TeamID) string { return folder(team) + "manifest.json" }

// readManifest returns the manifest of a team; an empty one if there is none. It drops the fingerprints of a manifest
// of another version, key or options.
func (e *Exporter) readManifest(ctx context.Context, team healthlab.TeamID) (Manifest, error) {
	settings := hash([]byte{manifestVersion}, e.key, []byte(strconv.FormatBool(e.opts.Identified)))
	fresh := Manifest{
		Version: manifestVersion, Team: team, Settings: settings, Schemas: e.schemas(),
		Files: []File{}, Retired: []RetiredFile{}, Fingerprints: map[string]Fingerprint{},
	}
	file, err := e.place.Open(ctx, manifestName(team))
	if errors.Is(err, healthlab.NotFound) {
		return fresh, nil
	}
	if err != nil {
		return Manifest{}, err
	}
	var m Manifest
	if err := errors.Join(json.NewDecoder(file).Decode(&m), file.Close()); err != nil {
		return Manifest{}, fmt.Errorf("read manifest: %w", err)
	}
	if m.Settings == settings && m.Fingerprints != nil {
		fresh.Fingerprints, fresh.VerifiedAt = m.Fingerprints, m.VerifiedAt
	}
	fresh.Files, fresh.Retired = append(fresh.Files, m.Files...), append(fresh.Retired, m.Retired...)
	return fresh, nil
}

func (x *export) writeManifest(ctx context.Context) error {
	m := &x.manifest
	m.WrittenAt = x.opts.Now().UTC()
	m.Files = m.Files[:0]
	for _, f := range x.files {
		m.Files = append(m.Files, f)
	}
	slices.SortFunc(m.Files, func(a, b File) int {
		return compare(partition{a.Resource, a.Month}, partition{b.Resource, b.Month})
	})
	text, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return err
	}
	return x.place.Write(ctx, manifestName(x.team), bytes.NewReader(text))
}

// replace records the new file of a partition, or nil for none, and retires the old file.
func (x *export) replace(p partition, f *File, print Fingerprint) {
	if old, ok := x.files[p]; ok {
		x.manifest.Retired = append(x.manifest.Retired, RetiredFile{Path: old.Path, At: x.opts.Now().UTC()})
		delete(x.files, p)
	}
	delete(x.manifest.Fingerprints, p.String())
	if f != nil {
		x.files[p] = *f
	}
	if print != (Fingerprint{}) {
		x.manifest.Fingerprints[p.String()] = print
	}
}

// removeRetired removes retired files after [Options.Grace], and old files that no manifest names. The manifest lists a
// retired file until it is removed.
func (x *export) removeRetired(ctx context.Context) error {
	now := x.opts.Now()
	var kept []RetiredFile
	named := map[string]bool{}
	for _, r := range x.manifest.Retired {
		if now.Sub(r.At) < x.opts.Grace {
			kept, named[r.Path] = append(kept, r), true
			continue
		}
		if err := x.place.Remove(ctx, r.Path); err != nil {
			return err
		}
	}
	for _, f := range x.files {
		named[f.Path] = true
	}
	for _, path := range x.present {
		if made, ok := partTime(path); ok && !named[path] && now.Sub(made) >= orphanAge {
			if err := x.place.Remove(ctx, path); err != nil {
				return err
			}
		}
	}
	if len(kept) == len(x.manifest.Retired) {
		return nil
	}
	x.manifest.Retired = append([]RetiredFile{}, kept...)
	return x.writeManifest(ctx)
}

const partStamp = "20060102T150405Z"

func partPath(team healthlab.TeamID, p partition, at time.Time, random string) string {
	// The time in the name finds abandoned parts.
	return folder(team) + "resource=" + p.resource + "/month=" + p.month + "/part-" + at.UTC().Format(partStamp) + "-" + random + ".parquet"
}

func partTime(path string) (time.Time, bool) {
	_, name, ok := strings.Cut(path, "/part-")
	if !ok || len(name) < len(partStamp) {
		return time.Time{}, false
	}
	at, err := time.Parse(partStamp, name[:len(partStamp)])
	return at, err == nil
}
