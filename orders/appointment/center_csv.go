package appointment

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/healthlab-dev/healthlab/orders/internal/rules"
)

// centerColumns are the columns of a CSV file of centers. Each function reads a cell that is not empty. If the cell is
// invalid, it returns what the column allows, otherwise an empty text.
var centerColumns = map[string]func(c *Center, cell string) (allowed string){
	"lab_id":       func(c *Center, s string) string { return rules.Expect(rules.ParseInt(&c.LabID, s), rules.WholeNumber) },
	"site_code":    func(c *Center, s string) string { c.SiteCode = s; return "" },
	"name":         func(c *Center, s string) string { c.Metadata.Name = s; return "" },
	"first_line":   func(c *Center, s string) string { c.Metadata.FirstLine = s; return "" },
	"second_line":  func(c *Center, s string) string { c.Metadata.SecondLine = s; return "" },
	"city":         func(c *Center, s string) string { c.Metadata.City = s; return "" },
	"state":        func(c *Center, s string) string { c.Metadata.State = s; return "" },
	"zip_code":     func(c *Center, s string) string { c.Metadata.ZipCode = s; return "" },
	"phone_number": func(c *Center, s string) string { c.Metadata.PhoneNumber = s; return "" },
	"fax_number":   func(c *Center, s string) string { c.Metadata.FaxNumber = s; return "" },
	"website":      func(c *Center, s string) string { c.Metadata.Website = &s; return "" },
	"hours": func(c *Center, s string) string {
		c.Metadata.Hours = json.RawMessage(s)
		return rules.Expect(json.Valid([]byte(s)), "JSON")
	},
	"lng":           func(c *Center, s string) string { return degrees(&c.Location.Lng, s, 180) },
	"lat":           func(c *Center, s string) string { return degrees(&c.Location.Lat, s, 90) },
	"iana_timezone": func(c *Center, s string) string { c.IANATimezone = s; return "" },
	"capabilities":  capabilities,
	"active": func(c *Center, s string) string {
		c.Inactive = s == "false"
		return rules.Expect(s == "true" || s == "false", rules.TrueOrFalse)
	},
}

func degrees(into *float64, s string, most float64) string {
	f, err := strconv.ParseFloat(s, 64)
	*into = f
	return rules.Expect(err == nil && f >= -most && f <= most, fmt.Sprintf("a number of degrees from -%g to %g", most, most))
}

func capabilities(c *Center, s string) string {
	for _, name := range strings.Fields(s) {
		c.Capabilities = append(c.Capabilities, PSCCapability(name))
		if !slices.Contains(PSCCapabilities(), PSCCapability(name)) {
			return "one or more of " + rules.List(PSCCapabilities()) + ", separated by spaces"
		}
	}
	return ""
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
			if allowed := centerColumns[columns[i]](&at, cell); allowed != "" {
				c.Add("cell", "must be "+allowed, columns[i])
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
