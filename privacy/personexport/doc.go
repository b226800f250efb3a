// Package personexport makes exports of all stored data about a person: a ZIP file of
// documents that other programs read.
//
// An export is a job. [Service.Start] stores the job, [Service.Run] writes the files one after
// another, and [Service.Open] returns the ZIP file once the job is completed. Run records each
// finished file in the job. So if a process stops, only the unfinished file is written again,
// by another process, once the lease of the job has ended. Files are streamed, so memory does
// not grow with the amount of data.
//
//	exports, err := personexport.New(store, files, users, map[string]personexport.Source{"samples": samples}, nil)
//	job, err := exports.Start(ctx, team, user)
//	go exports.Run(ctx)
//	archive, err := exports.Open(ctx, team, user, job.ID)
//	err = archive.Write(ctx, w)
//
// Completed exports are deleted after [Options].Keep, and when the person is erased.
//
// Names to know: [Service], [Store], [Source], [Job], [PublishedJob].
package personexport
