package healthdata

import (
	"cmp"
	"slices"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata/series"
)

// sampleNews gathers the samples of one upload that were new or changed, over all the
// series that it touched.
type sampleNews struct {
	blocks []*series.Block
	fresh  [][]bool
}

func (n *sampleNews) add(in *series.Block, o *series.Outcome) {
	if o.Idle() {
		return
	}
	block := new(series.Block)
	fresh := o.Diff(block, in)
	n.blocks, n.fresh = append(n.blocks, block), append(n.fresh, fresh)
}

func (n *sampleNews) len() int {
	total := 0
	for _, b := range n.blocks {
		total += b.Len()
	}
	return total
}

// newsItem is one sample that was new or changed.
type newsItem struct {
	series.Sample
	fresh bool
}

// sorted returns the samples ascending by timestamp, then type.
func (n *sampleNews) sorted() []newsItem {
	out := make([]newsItem, 0, n.len())
	for i, b := range n.blocks {
		for j, s := range b.All() {
			out = append(out, newsItem{s, n.fresh[i][j]})
		}
	}
	if len(n.blocks) > 1 {
		slices.SortStableFunc(out, func(a, b newsItem) int {
			return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.Type, b.Type))
		})
	}
	return out
}

// sampleEvents makes the events of new and changed samples: consecutive parts, each
// within the limits of one message.
func (s *Service) sampleEvents(in *intake, news *sampleNews) []healthlab.Event {
	var events []healthlab.Event
	head := s.batchHead(in)
	key := in.eventKey()
	body, count, fate := head, 0, FateChanged
	flush := func() {
		data := append(slices.Clone(body), ']', '}')
		events = append(events, s.event(in, fate, key, data))
		body, count, fate = head, 0, FateChanged
	}
	var row []byte
	for _, item := range news.sorted() {
		row = in.resource.appendSample(row[:0], &item.Sample)
		if count > 0 && (count == s.opts.BatchSamples || len(body)+len(row)+3 > s.opts.BatchBytes) {
			flush()
		}
		if count > 0 {
			body = append(body, ',')
		}
		body = append(body, row...)
		count++
		if item.fresh {
			fate = FateNew
		}
	}
	flush()
	return events
}

// batchHead is the beginning of the payload of every part, up to the samples. Its
// capacity is its length, so that appending to it copies.
func (s *Service) batchHead(in *intake) []byte {
	b := append([]byte(nil), `{"user_id":`...)
	b = appendString(b, in.user.ID.String())
	b = append(b, `,"source_id":`...)
	b = appendNumber(b, float64(SourceNumber(in.Provider)))
	b = append(b, `,"source":`...)
	b = appendJSON(b, s.source(in.Source))
	return slices.Clip(append(b, `,"data":[`...))
}
