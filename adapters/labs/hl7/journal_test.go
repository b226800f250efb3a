package hl7_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/labs/hl7"
	"github.com/healthlab-dev/healthlab/adapters/labs/hl7/er7"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/orders"
)

// A second process continues with the journal of the first: it sends no order twice, handles
// no message twice, and has the messages that wait for review.
func TestJournal_secondProcessContinuesWhereTheFirstStopped(t *testing.T) {
	j := memory.New(&memory.Options{UsersElsewhere: true}).LabJournal()
	b := newBenchOn(t, j, nil)
	s := submission()
	n := b.submit(s)
	raw := b.report(n, ana, ferrP, ferritin("9", "L", "P"))
	require.Equal(t, "AA", b.send(raw))
	lost := b.report("GONE", ana, ferrF, ferritin("9", "L", "F"))
	require.Equal(t, "AA", b.send(lost))
	before := b.told()

	b = newBenchOn(t, j, nil)
	require.Equal(t, before, b.told())
	got, err := b.back.Submit(t.Context(), s)
	require.NoError(t, err)
	require.Equal(t, n, got.SampleID)
	require.Empty(t, b.lab.sent, "the laboratory has it")
	require.Equal(t, "AA", b.send(raw))
	require.Equal(t, before, b.told(), "it was taken in before")
	b.n = 100
	require.Equal(t, "AA", b.send(b.report(n, ana, ferrF, ferritin("9", "L", "F"), ironF, iron)))
	require.Equal(t, orders.FinalResult, b.told()[1].On)
	list, err := b.back.Review(t.Context(), 0, 10)
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, lost, list[0].Raw)
	require.NoError(t, b.back.Attach(t.Context(), list[0].Place, s.Order.TeamID, s.Order.ID))
	list, err = b.back.Review(t.Context(), 0, 10)
	require.NoError(t, err)
	require.Empty(t, list)
	kept, err := b.back.Deliveries(t.Context(), s.Order.TeamID, s.Order.ID)
	require.NoError(t, err)
	var messages [][]byte
	for _, d := range kept {
		messages = append(messages, d.Raw)
	}
	require.Contains(t, messages, raw)
	require.Contains(t, messages, lost)
	kept, err = b.back.Deliveries(t.Context(), healthlab.TeamID{UUID: uuid.New()}, s.Order.ID)
	require.ErrorIs(t, err, healthlab.NotFound)
	require.Empty(t, kept)
}

// A cursor that outlived its journal hides nothing of the next one.
func TestUpdates_cursorBeyondTheJournalStartsFromTheBeginning(t *testing.T) {
	b := newBench(t, nil)
	n := b.submit(submission())
	require.Equal(t, "AA", b.send(b.report(n, ana, ferrF, ferritin("9", "L", "F"))))
	batch, err := b.back.Updates(t.Context(), "50", 10)
	require.NoError(t, err)
	require.Len(t, batch.Messages, 1)
	require.Equal(t, "1", batch.Cursor)
	batch, err = b.back.Updates(t.Context(), batch.Cursor, 10)
	require.NoError(t, err)
	require.Empty(t, batch.Messages)
}

// Orders are written as files and results are read from files: no half-written file is read,
// and no file is deleted.
func TestFolder_writesOrdersAndReadsOnlyFinishedFiles(t *testing.T) {
	out, in := t.TempDir(), t.TempDir()
	now := time.Now()
	f := hl7.NewFolder(out, in, &hl7.FolderOptions{Now: func() time.Time { return now }, Settle: time.Second})
	b := newBench(t, nil)
	back := hl7.New(f, memory.New(&memory.Options{UsersElsewhere: true}).LabJournal(), &hl7.Options{Us: hl7.Party{Application: "ORDERS"}})
	s := submission()
	for range 2 {
		got, err := back.Submit(t.Context(), s)
		require.NoError(t, err)
		require.Empty(t, got.SampleID, "the laboratory will say so later")
	}
	files, err := filepath.Glob(filepath.Join(out, "*.hl7"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	raw, err := os.ReadFile(files[0])
	require.NoError(t, err)
	order, err := er7.Parse(raw, nil)
	require.NoError(t, err)
	n := order.Segment("ORC").Field(2).Text()

	put := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(in, name), []byte(text), 0o600))
	}
	head := "FHS|^~\\&\rBHS|^~\\&\r"
	put("batch.hl7", head+string(b.report(n, ana, ferrP, ferritin("9", "L", "P")))+"\r"+string(b.report(n, ana, ferrF, ferritin("9.5", "L", "F"), ironF, iron))+"\rBTS|2\rFTS|1\r")
	put("partly.hl7", head+"MSH|^~\\&\rsecret\r"+string(b.report("GONE", ana, strings.Replace(ferrF, "F1^LIS", "F9", 1), ferritin("9", "L", "F")))+"\rBTS|2\rFTS|1\r")
	put("broken.hl7", "MSH|^~\\&\rsecret")
	put("other.hl7", "MSH|^~\\&|||||||ADT^A01")
	put("half.part", "MSH|")
	swept, err := f.Sweep(t.Context(), back.Receive)
	require.NoError(t, err)
	require.Zero(t, swept, "they may still be written")
	now = now.Add(time.Minute)
	failing := func(context.Context, *er7.Message) error { return healthlab.Unavailable }
	swept, err = f.Sweep(t.Context(), failing)
	require.ErrorIs(t, err, healthlab.Unavailable)
	require.Equal(t, 1, swept, "the broken one")
	swept, err = f.Sweep(t.Context(), back.Receive)
	require.NoError(t, err)
	require.Equal(t, 3, swept)
	review, err := back.Review(t.Context(), 0, 10)
	require.NoError(t, err)
	require.Len(t, review, 1, "what can be read of a file is taken in")
	batch, err := back.Updates(t.Context(), "", 10)
	require.NoError(t, err)
	require.Equal(t, []orders.Trigger{orders.PartialResult, orders.FinalResult}, triggers(batch.Messages))
	put("batch.hl7", "MSH|^~\\&|LIS||||||ORU^R01")
	now = now.Add(time.Minute)
	ctx, cancel := context.WithCancel(t.Context())
	take := func(ctx context.Context, m *er7.Message) error {
		defer cancel()
		return back.Receive(context.WithoutCancel(ctx), m)
	}
	require.NoError(t, f.Run(ctx, take))
	for _, name := range []string{"done/batch.hl7", "done/1-batch.hl7", "failed/broken.hl7", "failed/partly.hl7", "failed/other.hl7", "half.part"} {
		require.FileExists(t, filepath.Join(in, name))
	}
	_, err = hl7.NewFolder("", filepath.Join(in, "none"), nil).Sweep(t.Context(), failing)
	require.Error(t, err)
	_, err = hl7.NewFolder(filepath.Join(in, "none"), "", nil).Send(t.Context(), []byte("x"), nil)
	require.ErrorIs(t, err, healthlab.Unavailable)
}

// Files are read in the laboratory's character set, as what comes over a connection is.
func TestFolder_filesAreReadInTheLabsCharacterSet(t *testing.T) {
	in, now := t.TempDir(), time.Now()
	f := hl7.NewFolder("", in, &hl7.FolderOptions{Now: func() time.Time { return now.Add(time.Minute) }, Charset: er7.Latin1})
	b := newBench(t, func(o *hl7.Options) { o.Charset = er7.Latin1 })
	n := b.submit(submission())
	raw := b.report(n, ana, ferrF, "OBX|1|ST|1^Note||erh\xf6ht||||||F")
	require.NoError(t, os.WriteFile(filepath.Join(in, "r.hl7"), raw, 0o600))
	swept, err := f.Sweep(t.Context(), b.back.Receive)
	require.NoError(t, err)
	require.Equal(t, 1, swept)
	require.FileExists(t, filepath.Join(in, "done", "r.hl7"))
	require.Equal(t, map[string]string{"Note": "erhöht"}, values(b.told()[0]))
}
