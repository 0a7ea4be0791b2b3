"""Nouns and names, as tables that read like a pocket dictionary: `French gender = English`.

Gender is m or f, mp or fp where only the plural is used. A slash gives a plural that no rule yields.
Frequent words stand first in their class: the grammar draws them by rank.
"""

# Letters name classes of nouns that go with the same verbs (see verbs.py).
COUNTABLE = {
    # texts that are adopted
    "T": """rapport m = report; proposition f = proposal; directive f = directive;
        résolution f = resolution; amendement m = amendment; règlement m = regulation;
        recommandation f = recommendation; texte m = text; compromis m = compromise; budget m = budget;
        projet de loi/projets de loi m = bill; plan d'action/plans d'action m = action plan;
        déclaration f = statement; programme de travail/programmes de travail m = work programme;
        calendrier m = timetable; position commune/positions communes f = common position;
        décision-cadre/décisions-cadres f = framework decision;
        code de conduite/codes de conduite m = code of conduct/codes of conduct;
        feuille de route/feuilles de route f = road map;
        projet de budget/projets de budget m = draft budget; ordre du jour/ordres du jour m = agenda;
        budget rectificatif/budgets rectificatifs m = amending budget; annexe f = annex""",
    # documents that are read and written
    "R": """document m = document; étude f = study; lettre f = letter; communication f = communication;
        analyse f = analysis/analyses; pétition f = petition; liste f = list; dossier m = file;
        questionnaire m = questionnaire; livre vert/livres verts m = green paper; article m = article;
        avis d'expert/avis d'experts m = expert opinion; discours m = speech""",
    # treaties
    "C": """accord m = agreement; traité m = treaty; convention f = convention; protocole m = protocol;
        contrat m = contract; charte f = charter; mandat m = mandate""",
    # what governments do
    "M": """réforme f = reform; programme m = programme; projet m = project; stratégie f = strategy;
        plan m = plan; mesure f = measure; initiative f = initiative; politique f = policy;
        campagne f = campaign; système m = system; mécanisme m = mechanism;
        projet pilote/projets pilotes m = pilot project; approche f = approach; procédure f = procedure;
        solution f = solution; méthode f = method""",
    # what governments keep up
    "B": """fonds m = fund; agence f = agency; réseau m = network;
        centre de recherche/centres de recherche m = research centre; partenariat m = partnership;
        base de données/bases de données f = database; école f = school; laboratoire m = laboratory;
        aéroport m = airport; centrale nucléaire/centrales nucléaires f = nuclear power station;
        musée m = museum; plateforme numérique/plateformes numériques f = digital platform; port m = port;
        hôpital m = hospital; ligne ferroviaire/lignes ferroviaires f = railway line; tribunal m = court;
        barrage m = dam; parc naturel/parcs naturels m = nature park""",
    # what governments impose
    "N": """taxe f = tax; norme f = standard; sanction f = sanction; quota m = quota;
        subvention f = subsidy; dérogation f = derogation; restriction f = restriction;
        interdiction f = ban; embargo m = embargo; moratoire m = moratorium/moratoria;
        exemption f = exemption; redevance f = levy; bourse f = grant; règle f = rule; péage m = toll;
        obligation f = obligation; contrôle m = check; droit de douane/droits de douane m = customs duty""",
    # gatherings
    "E": """débat m = debate; réunion f = meeting; conférence f = conference; sommet m = summit;
        vote m = vote; séance f = sitting; négociation f = negotiation; consultation f = consultation;
        audition f = hearing; élection f = election; référendum m = referendum; séminaire m = seminar;
        congrès m = congress; visite f = visit; table ronde/tables rondes f = round table""",
    # officials
    "O": """rapporteur m = rapporteur; ministre m = minister; commissaire f = Commissioner;
        président m = President; député m = Member; députée f = Member; ministre f = minister;
        commissaire m = Commissioner; présidente f = President; ambassadeur m = ambassador;
        expert m = expert; conseiller m = adviser; négociateur m = negotiator;
        porte-parole/porte-parole m = spokesperson; observateur m = observer; experte f = expert;
        maire m = mayor; sénateur m = senator; vice-président m = Vice-President;
        secrétaire d'État/secrétaires d'État m = State Secretary; conseillère f = adviser;
        ambassadrice f = ambassador; juge m = judge; coordinateur m = coordinator; diplomate m = diplomat;
        procureur m = prosecutor""",
    # groups of people, always in the plural
    "X": """citoyen m = citizen; agriculteur m = farmer; travailleur m = worker;
        pêcheur m = fisherman/fishermen; consommateur m = consumer; femme f = woman/women;
        étudiant m = student; entreprise f = company; réfugié m = refugee; chercheur m = researcher;
        région f = region; enfant m = child/children; chômeur m = unemployed person/unemployed people;
        producteur m = producer; enseignant m = teacher; patient m = patient; retraité m = pensioner;
        contribuable m = taxpayer; famille f = family; journaliste m = journalist; ville f = city;
        électeur m = voter; victime f = victim; île f = island; habitant m = inhabitant;
        université f = university; immigré m = immigrant; artisan m = craftsman/craftsmen;
        passager m = passenger; petite entreprise/petites entreprises f = small business;
        infirmière f = nurse; apprenti m = apprentice; investisseur m = investor;
        syndicat m = trade union; viticulteur m = wine-grower; bénévole m = volunteer;
        touriste m = tourist; marin m = seafarer; artiste m = artist; interprète m = interpreter;
        cycliste m = cyclist""",
}

# Always with the definite article in French; what stands on the right says whether English has one.
GENERIC = {
    "P": """chômage m = unemployment; pauvreté f = poverty; corruption f = corruption;
        pollution f = pollution; fraude f = fraud; inflation f = inflation; terrorisme m = terrorism;
        criminalité f = crime; racisme m = racism; crise économique f = the economic crisis;
        exclusion sociale f = social exclusion; réchauffement climatique m = global warming;
        discrimination f = discrimination; violence f = violence; bureaucratie f = bureaucracy;
        évasion fiscale f = tax evasion; dette publique f = public debt;
        blanchiment d'argent m = money laundering; trafic de drogue m = drug trafficking;
        crise financière f = the financial crisis; spéculation f = speculation; sécheresse f = drought;
        protectionnisme m = protectionism; surpêche f = overfishing; travail des enfants m = child labour;
        déforestation f = deforestation; contrefaçon f = counterfeiting;
        travail non déclaré m = undeclared work; concurrence déloyale f = unfair competition;
        déficit budgétaire m = the budget deficit; extrémisme m = extremism;
        pollution sonore f = noise pollution""",
    "G": """sécurité f = security; démocratie f = democracy; croissance f = growth; paix f = peace;
        cohésion sociale f = social cohesion; concurrence f = competition; transparence f = transparency;
        stabilité f = stability; coopération f = cooperation;
        développement durable m = sustainable development; compétitivité f = competitiveness;
        solidarité f = solidarity; innovation f = innovation; liberté de la presse f = press freedom;
        égalité f = equality; biodiversité f = biodiversity; diversité culturelle f = cultural diversity;
        état de droit m = the rule of law; protection sociale f = social protection;
        libre circulation f = free movement; prospérité f = prosperity;
        qualité de l'eau f = water quality; dialogue social m = social dialogue; mobilité f = mobility;
        vie privée f = privacy; patrimoine culturel m = cultural heritage;
        intérêt général m = the public interest; bien-être animal m = animal welfare;
        efficacité énergétique f = energy efficiency;
        indépendance de la justice f = judicial independence; agriculture biologique f = organic farming""",
    "D": """agriculture f = agriculture; pêche f = fisheries; transports mp = transport;
        énergie f = energy; environnement m = the environment; santé publique f = public health;
        recherche f = research; éducation f = education; emploi m = employment;
        marché intérieur m = the internal market; droits de l'homme mp = human rights;
        culture f = culture; immigration f = immigration; industrie f = industry; tourisme m = tourism;
        fiscalité f = taxation; élargissement m = enlargement;
        services financiers mp = financial services; sécurité alimentaire f = food safety;
        politique régionale f = regional policy; énergies renouvelables fp = renewable energy;
        commerce international m = international trade; logement m = housing;
        sécurité routière f = road safety; politique étrangère f = foreign policy;
        formation professionnelle f = vocational training; télécommunications fp = telecommunications;
        énergie nucléaire f = nuclear energy; déchets mp = waste;
        protection des consommateurs f = consumer protection; égalité des chances f = equal opportunities;
        marchés publics mp = public procurement; aide au développement f = development aid;
        chemins de fer mp = railways; jeunesse f = youth; produits chimiques mp = chemicals;
        sport m = sport; aviation civile f = civil aviation; sucre m = sugar""",
}

# Institutions; an article of French is given where there is one, then number and pronoun of the English name.
INSTITUTIONS = """la Commission f = the Commission it; le Conseil m = the Council it;
    le Parlement m = Parliament it; le gouvernement m = the government it;
    les États membres mp = the Member States they; la présidence f = the Presidency it;
    la Cour de justice f = the Court of Justice it; la Banque centrale f = the Central Bank it;
    l'Union européenne f = the European Union it; la Cour des comptes f = the Court of Auditors it;
    le groupe socialiste m = the Socialist Group it; le groupe libéral m = the Liberal Group it;
    les Nations unies fp = the United Nations it;
    le Comité des régions m = the Committee of the Regions it; la Banque mondiale f = the World Bank it;
    les autorités nationales fp = the national authorities they; la majorité f = the majority it;
    l'opposition f = the opposition it; le Médiateur m = the Ombudsman he;
    le groupe des Verts m = the Green Group it;
    les parlements nationaux mp = the national parliaments they;
    l'Agence des médicaments f = the Medicines Agency it;
    les partenaires sociaux mp = the social partners they;
    l'Organisation mondiale du commerce f = the World Trade Organisation it;
    les pays candidats mp = the candidate countries they;
    le Fonds monétaire international m = the International Monetary Fund it; l'OTAN f = NATO it;
    les organisations humanitaires fp = the humanitarian organisations they;
    le groupe conservateur m = the Conservative Group it;
    les syndicats européens mp = the European trade unions they;
    l'Agence spatiale f = the Space Agency it; la Croix-Rouge f = the Red Cross it;
    l'Organisation mondiale de la santé f = the World Health Organisation it;
    l'Eurogroupe m = the Eurogroup it; la Cour suprême f = the Supreme Court it;
    le Conseil de l'Europe m = the Council of Europe it;
    la Conférence des présidents f = the Conference of Presidents it;
    le Bureau des statistiques m = the Office for Statistics it"""

COUNTRIES = """la France = France; l'Allemagne f = Germany; le Royaume-Uni = the United Kingdom;
    l'Italie f = Italy; l'Espagne f = Spain; la Pologne = Poland; les Pays-Bas mp = the Netherlands;
    la Belgique = Belgium; la Grèce = Greece; le Portugal = Portugal; la Suède = Sweden;
    la Turquie = Turkey; l'Irlande f = Ireland; les États-Unis mp = the United States;
    le Danemark = Denmark; la Hongrie = Hungary; l'Autriche f = Austria; la Finlande = Finland;
    la Roumanie = Romania; la Russie = Russia; la Chine = China; la Slovaquie = Slovakia;
    la Bulgarie = Bulgaria; le Japon = Japan; la Croatie = Croatia; la Slovénie = Slovenia;
    Chypre = Cyprus; Malte = Malta; la Lituanie = Lithuania; la Lettonie = Latvia; l'Estonie f = Estonia;
    le Luxembourg = Luxembourg; la Norvège = Norway; la Suisse = Switzerland; l'Ukraine f = Ukraine;
    le Canada = Canada; le Brésil = Brazil; l'Inde f = India; le Maroc = Morocco; l'Égypte f = Egypt;
    le Mexique = Mexico; les Philippines fp = the Philippines"""

CITIES = """Bruxelles = Brussels; Strasbourg = Strasbourg; Londres = London; Varsovie = Warsaw;
    Vienne = Vienna; Lisbonne = Lisbon; Rome = Rome; Madrid = Madrid; Athènes = Athens; Prague = Prague;
    Berlin = Berlin; Copenhague = Copenhagen; Genève = Geneva; Helsinki = Helsinki; Dublin = Dublin;
    Barcelone = Barcelona; Stockholm = Stockholm; Budapest = Budapest; Bucarest = Bucharest;
    Francfort = Frankfurt; Moscou = Moscow; Nice = Nice; Milan = Milan; Cologne = Cologne;
    Cracovie = Cracow; Anvers = Antwerp; Édimbourg = Edinburgh; Kiev = Kiev; Venise = Venice;
    Munich = Munich; Pékin = Beijing; Marseille = Marseille"""

SURNAMES = """Lambert Novak Rossi Schmidt Garcia Silva Jansen Nielsen Kowalski Murphy Weber Moreau Dubois Lindqvist
    Santini Keller Ferreira Nowak Horvat Byrne Fischer Almeida Virtanen Bianchi Larsen Dupont Petrov
    Wagner Romano Martin Johansson Costa Vermeulen Kaminski Hansen Marino Delgado Popescu Andersen
    Moretti Becker Duarte Girard Korhonen Walsh Ricci Mendes Svoboda Lefebvre Hoffmann Ortega Conti
    Nyman Barbier Zielinski Kelly Navarro Tavares Dvorak Berger"""
