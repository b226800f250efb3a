package main

import (
	"net/http"
	"strings"

	"github.com/healthlab-dev/healthlab/adapters/devices/fileupload"
)

// fileUploadPath is the path for uploading files of devices and phones; a user id follows.
const fileUploadPath = "/v2/import"

// withFileUpload adds the upload of files to the API, with the same authentication and limits.
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
