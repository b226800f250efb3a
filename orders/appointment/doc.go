// Package appointment answers one question: where and when can a sample be taken?
//
// A [Service] finds the providers of home visits in an area, the patient service centers near a
// postal code, and free slots from a [SlotBackend]. Each free slot has an encrypted booking key.
// Package visits books a slot for an order.
//
// The lifecycle of an appointment is a table: [Next] looks up a transition, [Diagram] draws the
// table, [Statuses] lists the published statuses. [Centers] finds centers, and [Zips] the positions of postal
// codes; [CenterIndex] is a Centers in memory, for centers that [ReadCentersCSV] reads.
//
// Times of slots are instants; days are local days of the center or the patient's address. Distances are in statute
// miles on a spherical earth.
package appointment

// Files in the order of reading: each uses those before it.
//
//	zone.go place.go lifecycle.go center.go backend.go center_index.go center_csv.go errors.go opening_hours.go
//	service.go booking_key.go area.go slots.go slot_cache.go rows.go
