package aggregate

import (
	"github.com/healthlab-dev/healthlab/aggregate/internal/vector"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
)

// sampleMerger removes samples that a preferred source covers, and passes the rest on to the next taker. The batches of
// a preferred source must come before those of others.
type sampleMerger struct {
	p     *plan
	next  taker
	set   *sampleSet
	state map[int]*sampleClaims // by resource: the times that preferred sources cover
	log   *mergeLog

	kept   []int32
	shares []float64 // weights of the kept samples; empty if all count in full
}

// sampleClaims are the times of one resource that preferred sources cover.
type sampleClaims struct {
	claims
	hours map[int64]int32 // by local hour since 1970: the source that is used
	times map[int64]int32 // by instant, for samples of zero duration: the source that is used
}

func newSampleMerger(p *plan, set *sampleSet, next taker) *sampleMerger {
	return &sampleMerger{p: p, next: next, set: set, state: map[int]*sampleClaims{}, log: newMergeLog(p, set.origins)}
}

// consume passes on the samples that are used. It drops the samples, and the parts of samples, that a preferred source
// covers. If the plan does not merge sources, it passes on all samples.
func (m *sampleMerger) consume(b *vector.Batch) error {
	if !m.p.merge {
		return m.next.consume(b)
	}
	c := m.claimsOf(b.Resource)
	c.begin(b.Source)
	m.kept, m.shares = m.kept[:0], m.shares[:0]
	if m.p.resources[b.Resource].Shape == healthdata.Discrete {
		m.selectByHour(c, b)
	} else {
		m.selectByInterval(c, b)
	}
	return m.passOn(b)
}

// claimsOf returns the times of a resource that preferred sources cover.
func (m *sampleMerger) claimsOf(resource int) *sampleClaims {
	c := m.state[resource]
	if c == nil {
		c = &sampleClaims{claims: claims{source: -1}, hours: map[int64]int32{}, times: map[int64]int32{}}
		m.state[resource] = c
	}
	return c
}

func (m *sampleMerger) originOf(b *vector.Batch) int {
	return m.set.originOf(m.set.list[b.Serial-1].Key.Origin)
}

// passOn passes on the rows m.kept of b, with the weights m.shares.
func (m *sampleMerger) passOn(b *vector.Batch) error {
	b.Pick(m.kept)
	if b.N == 0 {
		return nil
	}
	if len(m.shares) > 0 {
		m.scale(b)
	}
	return m.next.consume(b)
}

// selectByHour decides about samples without a duration: only the first source with a sample in a local hour is used in
// that hour. Sources come in order of preference.
func (m *sampleMerger) selectByHour(c *sampleClaims, b *vector.Batch) {
	w := m.p.window
	for i := 0; i < b.N; {
		h := floorDiv(b.Index[i], hour)
		from, to := h*hour, (h+1)*hour
		j := i + 1
		for j < b.N && b.Index[j] >= from && b.Index[j] < to {
			j++
		}
		owner, ok := c.hours[h]
		if !ok {
			owner = int32(b.Source)
			c.hours[h] = owner
		}
		rows := 0
		for ; i < j; i++ {
			if b.Index[i] < w.from || b.Index[i] >= w.to {
				continue
			}
			rows++
			if int(owner) == b.Source {
				m.kept = append(m.kept, int32(i))
			}
		}
		if m.log != nil && rows > 0 {
			v := verdict{source: b.Source, origin: m.originOf(b), resource: b.Resource, from: from, to: to, unit: "hour", used: usedAll, better: -1, betterOrigin: -1}
			if int(owner) != b.Source {
				v.used, v.better = usedNone, int(owner)
			}
			m.log.add(v, rows)
		}
	}
}

// selectByInterval keeps the parts of samples with a duration that no preferred source covers. A value that cannot be
// added up is kept in full, unless all of its time is covered.
func (m *sampleMerger) selectByInterval(c *sampleClaims, b *vector.Batch) {
	additive := m.p.resources[b.Resource].Additive
	cut := false
	for i := range b.N {
		v, share := c.byInterval(b, i)
		if v.used == usedPart && !additive {
			v.used, v.better, share = usedAll, -1, 1
		}
		if b.Index[i] < m.p.window.from || b.Index[i] >= m.p.window.to {
			continue
		}
		if m.log != nil {
			v.origin, v.betterOrigin = m.originOf(b), -1
			m.log.add(v, 1)
		}
		if v.used == usedNone {
			continue
		}
		m.kept, m.shares = append(m.kept, int32(i)), append(m.shares, share)
		cut = cut || share < 1
	}
	if !cut {
		m.shares = m.shares[:0]
	}
}

// byInterval decides about sample i of b, which has a start and an end. The part of the sample that no preferred source
// covers is used; share is that part, 0 to 1. A sample of zero duration is used unless a preferred source has an
// interval around it or a sample at the same instant. A sample without an end covers its local hour, as samples without
// a duration do.
func (c *sampleClaims) byInterval(b *vector.Batch, i int) (v verdict, share float64) {
	at := interval{b.Start[i], b.Start[i] + 1}
	switch {
	case b.End == nil || b.End[i] == series.NoEnd:
		from := b.Start[i] - (b.Index[i] - floorDiv(b.Index[i], hour)*hour)
		c.fresh = append(c.fresh, interval{from, from + hour})
	case b.End[i] > b.Start[i]:
		at.to = b.End[i]
		c.fresh = append(c.fresh, at)
	default:
		if owner, ok := c.times[at.from]; !ok {
			c.times[at.from] = int32(b.Source)
		} else if int(owner) != b.Source {
			return verdict{source: b.Source, resource: b.Resource, from: b.Index[i], to: b.Index[i], unit: "interval", used: usedNone, better: int(owner)}, 0
		}
	}
	v = verdict{source: b.Source, resource: b.Resource, from: b.Index[i], to: b.Index[i] + at.to - at.from, unit: "interval", used: usedAll, better: -1}
	share = 1
	length, better := c.covered(at)
	switch {
	case length == at.to-at.from:
		v.used, v.better = usedNone, better
	case length > 0:
		v.used, v.better, share = usedPart, better, float64(at.to-at.from-length)/float64(at.to-at.from)
	}
	return v, share
}

// scale multiplies the values and durations of the rows of b by their weights.
func (m *sampleMerger) scale(b *vector.Batch) {
	for k := range m.p.slots {
		s, v := &m.p.slots[k], &b.Cols[k]
		if s.from != fromSample || s.typ != typeFloat || s.field != fieldValue && s.field != fieldDuration || len(v.Floats) != b.N {
			continue
		}
		v.Floats = append(v.OwnFloats[:0], v.Floats...)
		v.OwnFloats = v.Floats
		for i, share := range m.shares {
			v.Floats[i] *= share
		}
	}
}

func (m *sampleMerger) grid() (*grid, error) {
	g, err := m.next.grid()
	if err == nil {
		g.log = m.log
	}
	return g, err
}

// competing reports whether several sources have samples of one resource.
func (p *plan) competing(set *sampleSet) bool {
	first := map[int]int{}
	for i := range set.list {
		s := &set.list[i]
		if p.where != nil {
			if rest, answer := vector.Settle(p.where, p.known(s)); rest == nil && answer != vector.IsTrue {
				continue
			}
		}
		if source, ok := first[s.resource]; ok && source != s.source {
			return true
		}
		first[s.resource] = s.source
	}
	return false
}
