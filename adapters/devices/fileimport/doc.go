// Package fileimport reads files that devices and phones leave behind, and hands what
// they hold to a [Sink]: recordings of activities, the whole export of a phone's health
// store, and the export of an account at a provider.
//
// The names to know:
//
//   - [Import], [ImportFile] and [ImportDir]: one reader, one file, a folder of them.
//   - [Sink]: takes summaries, samples and workout streams, in pieces.
//   - [Options]: under which provider, and within which bounds.
//   - [Report]: what was found, and what was left out, for a person to read.
//   - [FileError]: what is wrong with a file, and where.
//
// The format is found by looking into the file; files of account exports that share their
// shape are distinguished by name. A record, point, row, value or character that cannot be read or
// cannot be true is left out alone: the report counts it by kind, the first hundred with their
// place, and everything else is handed over. docs/account-exports.md has the table. A file of
// which nothing can be read gives one error that says what and where.
//
// Points of a recording (FIT, GPX, TCX) are judged before anything is derived. One without a time,
// with a time before 1990, more than 24 hours ahead of [Options.Now] or more than 7 days from the
// median of its recording is left out. A position that is out of range, or at 0, 0 away from its
// neighbours, an altitude outside -500 to 12,000 m, and a value outside its bounds are left out
// alone. XML is read in UTF-8, UTF-16, ISO-8859-1 and windows-1252.
//
// # FIT
//
// A session becomes a workout with its stream and samples of heart rate and breathing
// rate; a file may hold several sessions, and be several files in a chain. Totals are
// the device's own, and are derived from the records where it gives none. Compressed
// timestamps and compressed speed and distance are understood. A day's monitoring
// becomes a day of activity, and samples of steps, distance, active calories and heart
// rate. A device writes several files a day with running totals: the day has the greatest
// totals of its files, also of those of several devices, the least and the greatest heart
// rate, and no mean if the files differ. Weighings become body measurements and samples of
// weight and body fat. Blood pressure, blood oxygen, stress and breathing rate become samples.
//
// A file with a wrong checksum or length, or one that ends early, gives what can be read;
// notes of the report say what is wrong and what is left out. Of several sessions, each ends
// where it says and no later than the next one begins; records between two are left out.
// Heart rates that a strap hands over after a swim (hr messages) are the mean of each second.
//
// Times are in UTC; the offset is the one between UTC and the local time that the
// device wrote. A device that knew local time only leaves the zone to
// [Options.Zone]. Laps, developer fields, heart-rate zones by the device's own limits,
// and beat-to-beat intervals are left out: healthdata.HeartRateZones counts zones from
// the stream, given a birth date.
//
// # GPX
//
// A track of GPX 1.0 or 1.1 becomes a workout with its stream. Distance is the great
// circle on a sphere of 6,371.0088 km between points, not counted from one segment to
// the next. A person counts as moving from 0.3 m/s on. Climb is summed over altitudes that are
// averaged over five points, from rises of two metres on. Heart rate, cadence, power,
// speed and temperature are read from the extensions in use. Times without an
// offset are in [Options.Zone], or in UTC if it is not set; the same holds for TCX. A file of tracks without times is a
// plan, not a recording, and an error.
//
// Cadence on foot is steps per minute: recorders count strides, so it is doubled, in
// FIT, GPX and TCX.
//
// # TCX
//
// An activity of Training Center XML becomes a workout with its stream. Distance and calories are
// the sums of its laps. Heart rate, cadence, speed and power are read, also from the extension of
// activities. Courses are skipped.
//
// A recording that is packed with gzip is read as the recording is. If the gzip file is cut, what stands before is read.
//
// # Archives
//
// Each file of a ZIP archive is imported, also the export of a phone's health store. An archive
// is refused if it has more than 20,000 files or unpacks to more than [Options.MaxArchiveBytes];
// an archive in an archive is not read, but for the device files in the archive of a Garmin account.
//
// # Exports of accounts
//
// Files of the exports of WHOOP, Strava, Dexcom Clarity, LibreView, Withings, Fitbit and Garmin, alone,
// in a folder or in their archive. The recordings of Strava's archive are read through its list of
// activities. docs/account-exports.md lists columns, units and what is left out. Rows are read one
// by one, and items of JSON too: one that is not JSON is left out alone. A cell that cannot be
// read has a note with its line, its column and what was expected. A
// file with the name of one of them and other columns, as of an account in a language that is not
// read, is refused with the columns that are expected. A file of LibreView whose dates do not tell
// whether the day or the month is first needs [Options.DateOrder].
//
// # Databases
//
// A SQLite database, alone or in an archive, is read by [Options.Database]. Package healthconnect
// has the reader of Health Connect's export; it stands apart because it needs SQLite.
//
// # Export of a phone's health store
//
// The export.xml of Apple HealthKit, of any size, in bounded memory. Records become
// samples in the units of the catalogue; their source type follows from the device, or
// from the source's name. Each source of the store, an app or a device, is an origin of
// its own: its app_id is its bundle id, or else an id made from its name, which is not kept.
// Stages of sleep of one source make one session as long as
// they are at most an hour apart. Parts of a body measurement of one source at one
// instant make one. A workout whose track lies in a file beside the export gets it as
// its stream, if the export is imported as a file. A day's exercise minutes are kept as
// minutes of medium intensity: the store counts what is at least brisk. Offsets are
// those of the record's own zone where it names one, else those that its times are
// written with.
//
// Heart-rate variability of the store is SDNN, the resource hrv_sdnn.
//
// Left out, and counted in the report, are types that the catalogue has no place for, and
// insulin (the store does not say which).
//
// # Health Auto Export
//
// The JSON of an app that exports a phone's health store: metrics, nights and workouts, value by value.
// The length of totals follows from their times, or [Options.Aggregation] says it.
//
// # FHIR
//
// Observations of FHIR R4 in JSON: one, a Bundle of them, or NDJSON. Vital signs, glucose and activity become samples
// by their codes of LOINC, and values of whole days the day's activity. The file is read twice: one whose observations
// are of more than one person is refused before anything is handed over, and so are further files of another person in
// the same archive or folder. docs/fhir.md has the table of codes and of what is left out.
//
// # What it is not
//
// It does not store, merge or deduplicate: that is the sink's business, and importing
// a file twice hands over the same things twice, under the same external ids. A summary
// that another file may complete is Partial, and healthdata.Service merges it.
package fileimport

// Files in the order of reading: each uses those before it.
//
//	progress.go xmlchars.go encoding.go units.go report.go recording.go stamp.go csvcells.go csvfile.go
//	points.go exportkinds.go exportsource.go exportnight.go fileimport.go whoopexport.go clarityexport.go
//	xmlscan.go export.go detect.go fit.go fitbeats.go fitbitexport.go fitfile.go jsonmend.go jsonfile.go
//	output.go recordings.go garminexport.go archive.go stravaexport.go owners.go trackscan.go gpx.go
//	exportworkout.go withingsexport.go libreviewexport.go tcx.go batches.go phoneapp.go phoneappworkout.go fitday.go
//	fhirfile.go fhirkinds.go fhirobservation.go
