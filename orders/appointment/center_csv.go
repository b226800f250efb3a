package appointment

import (
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/healthlab-dev/healthlab/orders/internal/rules"
)

// centerColumns are the columns of a CSV file of centers. Each function reads a cell that is not empty, and
// returns false if the cell is invalid.
var centerColumns = map[string]func(c *Center, cell string) bool{
	"lab_id":        func(c *Center, s string) bool { return rules.ParseInt(&c.LabID, s) },
	"site_code":     func(c *Center, s string) bool { c.SiteCode = s; return true },
	"name":          func(c *Center, s string) bool { c.Metadata.Name = s; return true },
	"first_line":    func(c *Center, s string) bool { c.Metadata.FirstLine = s; return true },
	"second_line":   func(c *Center, s string) bool { c.Metadata.SecondLine = s; return true },
	"city":          func(c *Center, s string) bool { c.Metadata.City = s; return true },
	"state":         func(c *Center, s string) bool { c.Metadata.State = s; return true },
	"zip_code":      func(c *Center, s string) bool { c.Metadata.ZipCode = s; return true },
	"phone_number":  func(c *Center, s string) bool { c.Metadata.PhoneNumber = s; return true },
	"fax_number":    func(c *Center, s string) bool { c.Metadata.FaxNumber = s; return true },
	"website":       func(c *Center, s string) bool { c.Metadata.Website = &s; return true },
	"hours":         func(c *Center, s string) bool { c.Metadata.Hours = json.RawMessage(s); return json.Valid([]byte(s)) },
	"lng":           func(c *Center, s string) bool { return degrees(&c.Location.Lng, s, 180) },
	"lat":           func(c *Center, s string) bool { return degrees(&c.Location.Lat, s, 90) },
	"iana_timezone": func(c *Center, s string) bool { c.IANATimezone = s; return true },
	"capabilities":  capabilities,
	"active":        func(c *Center, s string) bool { c.Inactive = s == "false"; return s == "true" || s == "false" },
}

// centerForm returns the values that a column allows, as a text for errors.
func centerForm(column string) string {
	switch column {
	case "hours":
		return "JSON"
	case "lng":
		return "a number of degrees from -180 to 180"
	case "lat":
		return "a number of degrees from -90 to 90"
	case "capabilities":
		names := make([]string, len(PSCCapabilities()))
		for i, one := range PSCCapabilities() {
			names[i] = string(one)
		}
		return "one or more of " + strings.Join(names, ", ") + ", separated by spaces"
	case "active":
		return "true or false"
	}
	return "a whole number"
}

func degrees(into *float64, s string, most float64) bool {
	f, err := strconv.ParseFloat(s, 64)
	*into = f
	return err == nil && f >= -most && f <= most
}

func capabilities(c *Center, s string) bool {
	for _, name := range strings.Fields(s) {
		c.Capabilities = append(c.Capabilities, PSCCapability(name))
		if !slices.Contains(PSCCapabilities(), PSCCapability(name)) {
			return false
		}
	}
	return true
}

// ReadCentersCSV reads patient service centers from a CSV table: a line with the names of columns, in any order, then
// one line for each center. The columns:
//
//	lab_id         the number of the lab in the catalogue
//	site_code      the lab's own code of the center; unique within the lab
//	name           the name of the center
//	first_line     street and number; then second_line (optional), city,
//	               state (two letters) and zip_code (five digits, or ZIP+4)
//	phone_number   optional, as are fax_number and website
//	hours          optional; opening hours as any JSON
//	lng, lat       the position in degrees (WGS 84); negative in the west and south
//	iana_timezone  the time zone of the center, such as America/Phoenix
//	capabilities   optional; any of stat, appointment_scheduling_via_service and
//	               appointment_scheduling_with_lab, separated by spaces
//	active         true or false; true if the cell is empty
//
// A column without any value may be left out. Invalid lists every problem by line and column; line 1 is the line with
// the names of columns. Only [NewCenterIndex] checks whether the centers themselves are valid.
func ReadCentersCSV(r io.Reader) ([]Center, error) {
	var out []Center
	err := rules.ReadTable(r, "centers", func(name string) bool { return centerColumns[name] != nil }, func(columns, cells []string, c rules.Check) {
		var at Center
		located := 0
		for i, cell := range cells {
			if cell = strings.TrimSpace(cell); cell == "" {
				continue
			}
			if columns[i] == "lng" || columns[i] == "lat" {
				located++
			}
			if !centerColumns[columns[i]](&at, cell) {
				c.Add("cell", "must be "+centerForm(columns[i]), columns[i])
			}
		}
		if located < 2 {
			c.Add("missing", "must both have a value", "lng and lat")
		}
		out = append(out, at)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// ReadCenterIndex reads centers as [ReadCentersCSV] does and returns an index of them.
func ReadCenterIndex(r io.Reader) (*CenterIndex, error) {
	centers, err := ReadCentersCSV(r)
	if err != nil {
		return nil, err
	}
	return NewCenterIndex(centers)
}
