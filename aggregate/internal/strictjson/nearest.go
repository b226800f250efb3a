package strictjson

import "github.com/healthlab-dev/healthlab/internal/nearest"

// Nearest returns the known name with the fewest edits from name; "" if none is near.
func Nearest(name string, known []string) string {
	if len(name) > 64 {
		return ""
	}
	best, least := "", 1+max(1, len(name)/3)
	for _, k := range known {
		if d := nearest.Edits(name, k); d < least {
			best, least = k, d
		}
	}
	return best
}
