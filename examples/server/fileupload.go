package main

import (
	"net/http"
	"strings"

	"github.com/healthlab-dev/healthlab/adapters/devices/fileupload"
)

// fileUploadPath is where files of devices and phones are taken, with the id of a user behind it.
const fileUploadPath = "/v2/import"

// withFileUpload takes files beside the API, under the same rules.
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
