// Package healthconnect reads the export that Health Connect writes on a phone (Settings, Health
// Connect, Manage data, Backup and restore): the SQLite database health_connect_export.db, alone
// or in its ZIP archive. It is a package of its own because it needs SQLite.
//
//	report, err := fileimport.ImportFile(ctx, "Health Connect.zip", sink,
//		&fileimport.Options{Database: healthconnect.Read})
//
// The names to know are [Read] and [Format].
//
// # What is read
//
// Tables and columns follow the source of Health Connect in the Android Open Source Project;
// docs/phones.md lists them with their units. Samples: heart rate (each value of a series), HRV
// (RMSSD), breathing rate, blood oxygen, glucose, blood pressure, temperatures, weight, body fat,
// lean mass, VO2 max, steps, distance, active energy, floors, pushes, water, carbohydrates,
// caffeine and mindfulness. Summaries: nights with their stages, workouts, and the newest height.
// Their external ids are the ids of the store's records.
//
// The type of a source is that of the device, app if a person typed the value, and for glucose that of
// the specimen. The app is the package that wrote the record. Offsets are those of the record.
//
// # What is not read
//
// Records of other tables, routes, laps and segments of workouts, and deletions. They are counted in
// Report.Skipped by the name of their table.
//
// A record that cannot be read, with a value that is no number or a time that cannot be, and one that
// the sink refuses, is left
// out and counted in Report.Skipped; the others are handed over. A database that is damaged
// is refused before anything is handed over.
package healthconnect
