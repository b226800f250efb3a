package fileimport

import (
	"bytes"
	"io"
	"path"
	"slices"

	"golang.org/x/text/transform"
)

// routesFolder is the folder in which an export stores the tracks of its workouts. A track is not imported as a workout
// of its own.
const routesFolder = "workout-routes"

// belongsToOwner reports whether dir is a folder of recordings to which one of the files beside it refers.
func belongsToOwner(dir string, beside []string, open opener) bool {
	folder := path.Base(dir)
	if folder != routesFolder && folder != stravaFolder {
		return false
	}
	return slices.ContainsFunc(beside, func(name string) bool {
		return ownsRecordings(folder, path.Base(name), headOf(name, open))
	})
}

// ownsRecordings reports whether a file, by its first bytes or its name, is of the kind that refers to recordings in
// folder.
func ownsRecordings(folder, name string, head []byte) bool {
	if folder == stravaFolder {
		return stravaActivities.hasName(name) || csvFileOf(head, name) == &stravaActivities
	}
	format, _ := detect(head)
	return format == HealthExport || matchesName("export.xml", name)
}

// headOf returns the first bytes of a file, in UTF-8 if it is in UTF-16. If the file cannot be read, they are empty.
func headOf(name string, open opener) []byte {
	f, err := open(name)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	head, _ := io.ReadAll(io.LimitReader(f, detectBytes))
	if wide := utf16EncodingOf(head); wide != nil {
		head, _ = io.ReadAll(transform.NewReader(bytes.NewReader(head), wide.NewDecoder()))
	}
	return head
}
