package main

import (
	"net/http"
	"strings"

	"github.com/healthlab-dev/healthlab/adapters/devices/fileupload"
)

// fileUploadPath is the path for uploading export files of devices and phones. The id of the user follows it.
const fileUploadPath = "/v2/import"

// withFileUpload adds the upload of export files to the API, with the API's authentication and limits.
func (s *host) withFileUpload(next http.Handler) (http.Handler, error) {
	h, err := fileupload.Handler(fileupload.Config{API: s.API(), Health: s.Health})
	if err != nil {
		return nil, err
	}
	h = http.StripPrefix(fileUploadPath, h)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, fileUploadPath+"/") {
			h.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	}), nil
}
