package strictjson

// Nearest returns the known name with the fewest edits from name, if they are few;
// else the empty text.
func Nearest(name string, known []string) string {
	if len(name) > 64 {
		return ""
	}
	best, least := "", 1+max(1, len(name)/3)
	for _, k := range known {
		if d := edits(name, k, least); d < least {
			best, least = k, d
		}
	}
	return best
}

// edits is the number of letters to change, add or leave out between a and b
// (Levenshtein), or limit if it is that or more.
func edits(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := row[0]
		row[0] = i + 1
		for j := range len(b) {
			next := min(row[j]+1, row[j+1]+1, last)
			if a[i] != b[j] {
				next = min(row[j], row[j+1], last) + 1
			}
			last, row[j+1] = row[j+1], next
		}
	}
	return min(row[len(b)], limit)
}
