package postgres

import "maps"

func init() {
	maps.Copy(statements, map[string]string{
		"insertLabRecord": insertLabRecord, "selectLabRecords": selectLabRecords, "updateLabRecord": updateLabRecord,
		"lockLabJournal": lockLabJournal, "advanceLabJournal": advanceLabJournal, "hasLabDelivery": hasLabDelivery,
		"insertLabDelivery": insertLabDelivery, "settleLabDelivery": settleLabDelivery, "insertLabMessage": insertLabMessage, "forgetLabMessages": forgetLabMessages,
		"labDeliveryColumns": labDeliveryColumns, "selectLabDeliveries": selectLabDeliveries, "selectLabFeed": selectLabFeed, "selectLabReview": selectLabReview,
		"deleteLabRecordsOfUser": deleteLabRecordsOfUser, "deleteLabDeliveriesOfUser": deleteLabDeliveriesOfUser,
		"deleteLabMessagesOfUser": deleteLabMessagesOfUser,
	})
}
