package console

import (
	"net/http"
	"net/url"
)

// historyOf is the progress of the historical pulls of a source, one for each resource. Ended is the number of finished
// ones.
type historyOf struct {
	Ended, Resources int
	Days             int // number of days of the longest pull
	Fetched          int // progress of all pulls together, in days from 0 to Days
}

// addHistories adds the progress of the historical pull to each source of a person.
func (s *Console) addHistories(r *http.Request, list []source) error {
	page, err := s.histories(r, url.Values{"user_id": {userPath(r)}})
	if err != nil {
		return err
	}
	for i := range list {
		for _, u := range page.Data {
			var h historyOf
			all, fetched := 0, 0
			for _, one := range u.Provider[list[i].Slug].Pulled {
				h.Resources++
				h.Days, all = max(h.Days, one.Days), all+one.Days
				if one.Status == "success" || one.Status == "failure" {
					h.Ended, fetched = h.Ended+1, fetched+one.Days
				} else {
					fetched += one.Fetched
				}
			}
			if all > 0 && h.Ended < h.Resources {
				h.Fetched = h.Days * fetched / all
				list[i].History = &h
			}
		}
	}
	return nil
}
