// Package people answers one question: who is the patient of a lab order, and who pays for
// them?
//
// A [Service] stores the demographics of users ([UserInfo]), their insurance records
// ([InsuranceRecord]) and the payors that teams add, in a [Store]. A [Registry] has payors
// and diagnosis codes (ICD-10-CM). The other types describe a patient, a guarantor and a
// physician in orders, documents and requests.
//
// Printing or logging a value of this package that describes a person shows nothing.
package people

// Files in the order of reading: each uses those before it.
//
//	users.go physician.go consent.go demographics.go patient.go guarantor.go insurance_card.go
//	patient_request.go user_info.go insurance.go payor.go store.go registry.go service.go rows.go
