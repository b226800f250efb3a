package postgres

import "maps"

func init() {
	maps.Copy(statements, map[string]string{
		"lockExportUser": lockExportUser, "countExports": countExports, "insertExport": insertExport, "selectExport": selectExport,
		"lockExport": lockExport, "updateExport": updateExport, "selectExportsOfUser": selectExportsOfUser, "claimExports": claimExports,
		"deleteExport": deleteExport, "deleteExportsOfUser": deleteExportsOfUser, "emptyExportsOfUser": emptyExportsOfUser,
	})
}
