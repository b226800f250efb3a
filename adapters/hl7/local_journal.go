package hl7

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
)

// LocalJournal is a [Journal] of one process: in memory, and in a file if it was
// opened with one. It keeps every order and every message of the feed in memory.
type LocalJournal struct {
	mu       sync.Mutex
	dossiers map[string][]byte // as JSON, so that callers share no memory with it
	taken    map[string]bool
	review   []Delivery
	place    int64
	feed     [][]byte
	file     *os.File
	failed   error // why the file cannot be trusted any more
}

// NewMemoryJournal returns a journal that ends with the process: for tests, and where
// the laboratory can send everything again.
func NewMemoryJournal() *LocalJournal {
	return &LocalJournal{dossiers: map[string][]byte{}, taken: map[string]bool{}}
}

// OpenFileJournal returns a journal that survives the process: everything is in a
// file, which is on the disk when a call returns. One process at a time may open it. The
// file holds results of patients, unencrypted, with mode 0600. Invalid if the file is not a
// journal.
func OpenFileJournal(path string) (*LocalJournal, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // the host names the file
	if err != nil {
		return nil, fmt.Errorf("open HL7 journal: %w", err)
	}
	j := NewMemoryJournal()
	end, err := j.replay(f)
	if err == nil {
		err = f.Truncate(end) // a line that a crash cut short was not acknowledged
	}
	if err == nil {
		_, err = f.Seek(end, io.SeekStart)
	}
	if err != nil {
		return nil, fmt.Errorf("open HL7 journal: %w", errors.Join(err, f.Close()))
	}
	j.file = f
	return j, nil
}

// Close closes the file.
func (j *LocalJournal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file == nil {
		return nil
	}
	err := j.file.Close()
	j.file = nil
	return err
}

// change is one line of the file.
type change struct {
	Delivery *Delivery
	Dossiers []Dossier
	Messages []orders.Message
}

// replay reads the file, and returns where its last whole line ends.
func (j *LocalJournal) replay(f io.Reader) (int64, error) {
	in := bufio.NewReader(f)
	var end int64
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return end, nil
		}
		if err != nil {
			return 0, err
		}
		var c change
		if json.Unmarshal(line, &c) != nil {
			return 0, fmt.Errorf("%w: the file is no journal from byte %d on", healthlab.Invalid, end)
		}
		if err := j.apply(c); err != nil {
			return 0, err
		}
		end += int64(len(line))
	}
}

// write stores a change and applies it.
func (j *LocalJournal) write(c change) error {
	if c.Delivery != nil {
		c.Delivery.Place = j.place + 1
	}
	if j.file != nil {
		line, err := json.Marshal(c)
		if err != nil {
			return err
		}
		if err := j.append(append(line, '\n')); err != nil {
			return err
		}
	}
	return j.apply(c)
}

// append writes and syncs a line, or truncates the file to what it was. After a failed
// truncation the journal refuses writes.
func (j *LocalJournal) append(line []byte) error {
	if j.failed != nil {
		return fmt.Errorf("%w: the journal's file failed before: %w", healthlab.Unavailable, j.failed)
	}
	at, err := j.file.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	_, err = j.file.Write(line)
	if err == nil {
		err = j.file.Sync()
	}
	if err != nil {
		j.failed = errors.Join(j.file.Truncate(at), j.file.Sync())
	}
	return err
}

func (j *LocalJournal) apply(c change) error {
	dossiers := make([][]byte, len(c.Dossiers))
	feed := make([][]byte, len(c.Messages))
	var err error
	for i := range c.Dossiers {
		if dossiers[i], err = json.Marshal(c.Dossiers[i]); err != nil {
			return err
		}
	}
	for i := range c.Messages {
		if feed[i], err = json.Marshal(c.Messages[i]); err != nil {
			return err
		}
	}
	for i, d := range c.Dossiers {
		j.dossiers[d.Number] = dossiers[i]
	}
	j.feed = append(j.feed, feed...)
	if d := c.Delivery; d != nil {
		j.place = d.Place
		j.taken[d.Key] = true
		for i := range j.review {
			if j.review[i].Place == d.Resolves {
				j.review = append(j.review[:i:i], j.review[i+1:]...)
				break
			}
		}
		if d.Review != "" {
			d.Raw = bytes.Clone(d.Raw)
			j.review = append(j.review, *d)
		}
	}
	return nil
}

// Open implements [Journal].
func (j *LocalJournal) Open(ctx context.Context, d Dossier) (Dossier, error) {
	if err := ctx.Err(); err != nil {
		return Dossier{}, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, ok := j.dossiers[d.Number]; !ok {
		if err := j.write(change{Dossiers: []Dossier{d}}); err != nil {
			return Dossier{}, fmt.Errorf("open HL7 dossier: %w", err)
		}
	}
	return j.dossier(d.Number)
}

// Dossier implements [Journal].
func (j *LocalJournal) Dossier(ctx context.Context, number string) (Dossier, error) {
	if err := ctx.Err(); err != nil {
		return Dossier{}, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.dossier(number)
}

func (j *LocalJournal) dossier(number string) (Dossier, error) {
	b, ok := j.dossiers[number]
	if !ok {
		return Dossier{}, fmt.Errorf("HL7 dossier: %w", healthlab.NotFound)
	}
	var d Dossier
	err := json.Unmarshal(b, &d)
	return d, err
}

// Take implements [Journal].
func (j *LocalJournal) Take(ctx context.Context, d Delivery, numbers []string, edit func(map[string]*Dossier) Outcome) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.taken[d.Key] {
		return false, nil
	}
	if d.Resolves != 0 {
		if _, ok := j.underReview(d.Resolves); !ok {
			return false, fmt.Errorf("settle HL7 review: %w", healthlab.NotFound)
		}
	}
	found := map[string]*Dossier{}
	for _, n := range numbers {
		held, err := j.dossier(n)
		if errors.Is(err, healthlab.NotFound) {
			continue
		}
		if err != nil {
			return false, err
		}
		found[n] = &held
	}
	out := edit(found)
	d.Review = out.Review
	c := change{Delivery: &d, Messages: out.Messages}
	for _, n := range numbers {
		if held := found[n]; held != nil {
			c.Dossiers = append(c.Dossiers, *held)
			delete(found, n)
		}
	}
	if err := j.write(c); err != nil {
		return false, fmt.Errorf("take in HL7 message: %w", err)
	}
	return true, nil
}

func (j *LocalJournal) underReview(place int64) (Delivery, bool) {
	for _, d := range j.review {
		if d.Place == place {
			return d, true
		}
	}
	return Delivery{}, false
}

// Feed implements [Journal].
func (j *LocalJournal) Feed(ctx context.Context, after int64, n int) ([]Entry, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if after > int64(len(j.feed)) {
		after = 0 // the place is one of a journal that is gone
	}
	var out []Entry
	for i := max(after, 0); i < int64(len(j.feed)) && len(out) < n; i++ {
		e := Entry{Place: i + 1}
		if err := json.Unmarshal(j.feed[i], &e.Message); err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}

// Review implements [Journal].
func (j *LocalJournal) Review(ctx context.Context, after int64, n int) ([]Delivery, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	var out []Delivery
	for _, d := range j.review {
		if d.Place > after && len(out) < n {
			d.Raw = bytes.Clone(d.Raw)
			out = append(out, d)
		}
	}
	return out, nil
}
