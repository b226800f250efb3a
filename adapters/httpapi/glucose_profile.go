package httpapi

import (
	"net/http"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
	"github.com/healthlab-dev/healthlab/aggregate/glucoseprofile"
)

// readGlucoseProfile answers with the ambulatory glucose profile of a range of days, as JSON or as a PDF page.
func (a api) readGlucoseProfile(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	user := userID(in)
	q := glucoseprofile.Question{
		To: in.Date("end_date"), Days: in.Int("days", glucoseprofile.DefaultDays, 1, glucoseprofile.MaxDays),
		Unit: glucoseprofile.Unit(in.OneOf("unit", string(glucoseprofile.Millimoles), string(glucoseprofile.Millimoles), string(glucoseprofile.Milligrams))),
	}
	if err := in.Err(); err != nil {
		return err
	}
	kinds := []string{"application/json"}
	if a.GlucoseProfiles != nil {
		kinds = append(kinds, "application/pdf")
	}
	kind, ok := accepted(r.Header.Values("Accept"), kinds...)
	if !ok {
		return notAcceptable(kinds)
	}
	p, err := glucoseprofile.Of(r.Context(), a.Aggregate, team, user, q)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "private, no-store")
	if kind == "application/json" {
		return wire.JSON(w, http.StatusOK, p)
	}
	file, err := a.GlucoseProfiles.PrintProfile(r.Context(), user.String(), &p)
	if err != nil {
		return err
	}
	return wire.Bytes(w, http.StatusOK, kind, file)
}
