package fileimport

import "bytes"

// detectBytes is the number of leading bytes in which a file must show its format.
const detectBytes = 64 << 10

// detect returns the format of a file by its first bytes: the signature of FIT, ZIP, gzip or SQLite, or the root
// element of XML.
func detect(head []byte) (Format, error) {
	if len(head) >= 12 && string(head[8:12]) == ".FIT" {
		return FIT, nil
	}
	if bytes.HasPrefix(head, []byte("PK\x03\x04")) {
		return ZIP, nil
	}
	if bytes.HasPrefix(head, []byte("SQLite format 3\x00")) {
		return SQLite, nil
	}
	if bytes.HasPrefix(head, []byte("\x1f\x8b")) {
		return GZIP, nil
	}
	switch localName(rootName(utf8Of(head))) {
	case "gpx":
		return GPX, nil
	case "TrainingCenterDatabase":
		return TCX, nil
	case "HealthData":
		return HealthExport, nil
	}
	return "", ErrFormat
}

// rootName returns the name of the root element of an XML text, from its document type or first element; "" if neither
// is in b.
func rootName(b []byte) string {
	b = bytes.TrimPrefix(b, utf8BOM)
	for {
		b = bytes.TrimLeft(b, " \t\r\n")
		var closing string
		switch {
		case bytes.HasPrefix(b, []byte("<?")):
			closing = "?>"
		case bytes.HasPrefix(b, []byte("<!--")):
			closing = "-->"
		case bytes.HasPrefix(b, []byte("<!DOCTYPE")):
			return firstName(bytes.TrimLeft(b[len("<!DOCTYPE"):], " \t\r\n"))
		case bytes.HasPrefix(b, []byte("<")):
			return firstName(b[1:])
		default:
			return ""
		}
		_, after, found := bytes.Cut(b, []byte(closing))
		if !found {
			return ""
		}
		b = after
	}
}

func firstName(b []byte) string {
	n := 0
	for n < len(b) && nameByte[b[n]] {
		n++
	}
	return string(b[:n])
}
