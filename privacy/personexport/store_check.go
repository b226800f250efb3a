package personexport

import (
	"fmt"
	"time"

	"github.com/healthlab-dev/healthlab"
)

// CheckJob returns [healthlab.Invalid] for a job without an id, a team or a user. Stores call it before they
// insert a job.
func CheckJob(j *Job) error {
	if j.Team.IsZero() || j.ID == (JobID{}) || j.User.IsZero() {
		return fmt.Errorf("%w: export: the id, the team and the user must be set", healthlab.Invalid)
	}
	return nil
}

// Normal returns a deep copy of a job in the form that stores write: times in UTC to the microsecond. A status
// or a name of a file that [healthlab.CheckText] refuses is [healthlab.Invalid].
func (j *Job) Normal() (Job, error) {
	out := j.Clone()
	out.CreatedAt, out.UpdatedAt = healthlab.At(j.CreatedAt).Time, healthlab.At(j.UpdatedAt).Time
	out.CompletedAt, out.ExpiresAt = healthlab.At(j.CompletedAt).Time, healthlab.At(j.ExpiresAt).Time
	out.DueAt, out.StoreTime = healthlab.At(j.DueAt).Time, time.Time{}
	texts := []string{string(j.Status)}
	for i := range j.Files {
		texts = append(texts, j.Files[i].Name)
	}
	return out, healthlab.CheckText(texts...)
}
