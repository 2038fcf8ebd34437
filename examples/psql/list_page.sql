-- A list page of an application whose table is attached: 20 rows, each with the document to keep if it is a duplicate.
-- The join goes by index however large the collection is.
SELECT story.story_id, story.headline, duplicate.copy_of
FROM (
    SELECT story_id, headline, day, CAST(story_id AS text) AS external_id
    FROM news.story ORDER BY day DESC, story_id LIMIT 20
) AS story
LEFT JOIN nearsim.duplicates AS duplicate
    ON duplicate.collection = 'story' AND duplicate.profile = 'default' AND duplicate.external_id = story.external_id
ORDER BY story.day DESC, story.story_id;
