package fileimport

import (
	"cmp"
	"maps"
	"slices"

	"github.com/healthlab-dev/healthlab/healthdata"
)

// batches collects the samples and summaries of several sources of one provider, in one batch for each source.
type batches struct {
	out      *output
	provider string
	of       map[batchKey]*batch
}

type batchKey struct {
	kind healthdata.SourceType
	app  string
}

// mostBatches is the largest number of sources that are collected at a time. The limit is needed because the file
// chooses the number of sources.
const mostBatches = 100

func keyOf(from *origin) batchKey {
	key := batchKey{kind: from.kind}
	if from.app != nil {
		key.app = *from.app
	}
	return key
}

// batchOf returns the batch of a source.
func (b *batches) batchOf(from *origin) (*batch, error) {
	key := keyOf(from)
	if one := b.of[key]; one != nil {
		return one, nil
	}
	if len(b.of) >= mostBatches {
		if err := b.flush(); err != nil {
			return nil, err
		}
	}
	if b.of == nil {
		b.of = map[batchKey]*batch{}
	}
	b.of[key] = newBatch(b.out, healthdata.Source{Provider: b.provider, Type: from.kind, AppID: from.app})
	return b.of[key], nil
}

// flush sends the collected items to the sink, in the order of the sources.
func (b *batches) flush() error {
	for _, key := range slices.SortedFunc(maps.Keys(b.of), func(x, y batchKey) int {
		return cmp.Or(cmp.Compare(x.kind, y.kind), cmp.Compare(x.app, y.app))
	}) {
		if err := b.of[key].flush(); err != nil {
			return err
		}
	}
	clear(b.of)
	return nil
}
