package postgres

import "maps"

func init() {
	maps.Copy(statements, map[string]string{
		"insertAccessHead": insertAccessHead, "lockAccessHead": lockAccessHead, "updateAccessHead": updateAccessHead, "insertAccessLines": insertAccessLines,
		"selectAccessLines": selectAccessLines, "selectAccessLinesOf": selectAccessLinesOf, "selectUnanchored": selectUnanchored,
		"insertAccessAnchor": insertAccessAnchor, "selectAccessHead": selectAccessHead, "selectAccessAnchors": selectAccessAnchors,
		"pruneAccessLines": pruneAccessLines, "pruneAccessAnchors": pruneAccessAnchors,
	})
}
