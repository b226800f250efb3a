package appointment

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"slices"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
)

// CenterIndex is a [Centers] over a fixed list in memory, indexed by a grid. It is immutable and safe for
// concurrent use.
type CenterIndex struct {
	labs map[int]*atlasLab
}

// atlasLab has the centers of one lab, with their positions as points on a unit sphere.
type atlasLab struct {
	centers []Center // sorted by site code
	points  [][3]float64
	cells   map[int][]int32 // indexes of the active centers, by grid cell
}

// NewCenterIndex checks centers and returns an index of them. Invalid lists every problem: missing fields,
// duplicate codes, positions that are not on earth, unknown time zones.
func NewCenterIndex(centers []Center) (*CenterIndex, error) {
	if err := checkCenters(centers); err != nil {
		return nil, err
	}
	a := &CenterIndex{labs: map[int]*atlasLab{}}
	for _, c := range slices.SortedFunc(slices.Values(centers), func(a, b Center) int { return cmp.Compare(a.SiteCode, b.SiteCode) }) {
		l := a.labs[c.LabID]
		if l == nil {
			l = &atlasLab{cells: map[int][]int32{}}
			a.labs[c.LabID] = l
		}
		if !c.Inactive {
			cell := c.Location.Cell()
			l.cells[cell] = append(l.cells[cell], int32(len(l.centers)))
		}
		x, y, z := c.Location.Vector()
		l.centers, l.points = append(l.centers, c.clone()), append(l.points, [3]float64{x, y, z})
	}
	return a, nil
}

// checkCenters returns Invalid with every problem of the centers. The path of a problem starts with the index of the
// center in the list.
func checkCenters(centers []Center) error {
	var p healthlab.Problems
	type code struct {
		lab  int
		site string
	}
	seen := make(map[code]bool, len(centers))
	zones := map[string]bool{}
	for i, at := range centers {
		c := rules.Check{Problems: &p, At: []any{i}}
		if at.LabID <= 0 {
			c.Add("missing", "must be a whole number above 0", "lab_id")
		}
		if c.Text(at.SiteCode, "site_code", 1, rules.MaxText) && seen[code{at.LabID, at.SiteCode}] {
			c.Add("duplicate", "must not be the code of another center of the lab", "site_code")
		}
		seen[code{at.LabID, at.SiteCode}] = true
		m := at.Metadata
		c.Text(m.Name, "name", 1, rules.MaxText)
		c.Text(m.FirstLine, "first_line", 1, rules.MaxText)
		c.Text(m.City, "city", 1, rules.MaxText)
		c.Text(m.State, "state", 1, rules.MaxText)
		if !rules.ZipForm.MatchString(m.ZipCode) {
			c.Add("zip_form", "must be five digits, or five, a hyphen and four", "zip_code")
		}
		c.Text(m.SecondLine, "second_line", 0, rules.MaxText)
		c.Text(m.PhoneNumber, "phone_number", 0, rules.MaxText)
		c.Text(m.FaxNumber, "fax_number", 0, rules.MaxText)
		c.Optional(m.Website, "website", rules.MaxText)
		if len(m.Hours) > 0 && !json.Valid(m.Hours) {
			c.Add("json", "must be JSON", "hours")
		}
		if !at.Location.valid() || math.IsNaN(at.Location.Lng+at.Location.Lat) {
			c.Add("location", "must be a longitude from -180 to 180 and a latitude from -90 to 90", "location")
		}
		if _, known := zones[at.IANATimezone]; !known {
			_, err := Zone(at.IANATimezone)
			zones[at.IANATimezone] = err == nil
		}
		if !zones[at.IANATimezone] {
			c.Add("time_zone", "must be a zone of the IANA time zone database", "iana_timezone")
		}
	}
	return p.Err()
}

func (c Center) clone() Center {
	c.Capabilities = rules.NonNil(c.Capabilities)
	c.Metadata.Website = rules.ClonePtr(c.Metadata.Website)
	c.Metadata.Hours = slices.Clone(c.Metadata.Hours)
	return c
}

// hasCapabilities reports whether the center has all of the capabilities.
func (c *Center) hasCapabilities(all []PSCCapability) bool {
	for _, want := range all {
		if !slices.Contains(c.Capabilities, want) {
			return false
		}
	}
	return true
}

// CentersNear implements [Centers].
func (a *CenterIndex) CentersNear(_ context.Context, q CenterQuery) (CentersNear, error) {
	var out CentersNear
	l := a.labs[q.LabID]
	if l == nil {
		return out, nil
	}
	type hit struct {
		at int32
		d  float64
	}
	var hits []hit
	x, y, z := q.Near.Vector()
	most := chord(q.Miles)
	offers := map[PSCCapability]bool{}
	for _, cell := range cellsWithin(q.Near, q.Miles) {
		for _, i := range l.cells[cell] {
			p := &l.points[i]
			if d := chord2(p[0]-x, p[1]-y, p[2]-z); d <= most && l.centers[i].hasCapabilities(q.Capabilities) {
				hits = append(hits, hit{i, d})
				for _, c := range l.centers[i].Capabilities {
					offers[c] = true
				}
			}
		}
	}
	slices.SortFunc(hits, func(a, b hit) int { return cmp.Or(cmp.Compare(a.d, b.d), cmp.Compare(a.at, b.at)) })
	out.Total = len(hits)
	for _, h := range hits[:min(max(q.Most, 0), len(hits))] {
		out.Centers = append(out.Centers, l.centers[h.at].clone())
	}
	for c := range offers {
		out.Capabilities = append(out.Capabilities, c)
	}
	sortCapabilities(out.Capabilities)
	return out, nil
}

// sortCapabilities sorts capabilities in the order of [PSCCapabilities]; others follow by name.
func sortCapabilities(list []PSCCapability) {
	rank := func(c PSCCapability) int {
		if i := slices.Index(PSCCapabilities(), c); i >= 0 {
			return i
		}
		return len(PSCCapabilities())
	}
	slices.SortFunc(list, func(a, b PSCCapability) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b)) })
}

// CentersAt implements [Centers].
func (a *CenterIndex) CentersAt(_ context.Context, lab int, codes []string) ([]Center, error) {
	var out []Center
	l := a.labs[lab]
	if l == nil {
		return nil, nil
	}
	for _, code := range slices.Compact(slices.Sorted(slices.Values(codes))) {
		if i, ok := l.find(code); ok {
			out = append(out, l.centers[i].clone())
		}
	}
	return out, nil
}

func (l *atlasLab) find(code string) (int, bool) {
	return slices.BinarySearchFunc(l.centers, code, func(c Center, code string) int { return cmp.Compare(c.SiteCode, code) })
}

// NextCenters implements [Centers].
func (a *CenterIndex) NextCenters(_ context.Context, lab int, has PSCCapability, after string, n int) ([]Center, error) {
	var out []Center
	l := a.labs[lab]
	if l == nil {
		return nil, nil
	}
	first, found := l.find(after)
	if found {
		first++
	}
	for _, c := range l.centers[first:] {
		if len(out) >= n {
			break
		}
		if !c.Inactive && slices.Contains(c.Capabilities, has) {
			out = append(out, c.clone())
		}
	}
	return out, nil
}
